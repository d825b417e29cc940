"""A mark follows the rules of the course and the roster: lateness, attempts, weights."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from classroom import Instant, hand_in, marks, report_of, run, state
from commandline import Cli

# --- lateness -------------------------------------------------------------------------------------

LATE = """
title = "A tiny course"
points = 8
due = 2026-10-30T12:00:00+00:00
"""
ROSTER = """id,name,section,submitted,due
s001,Student One,A,2026-10-30T12:00:00+00:00,
s002,Student Two,A,2026-10-30T12:09:00+00:00,
s003,Grace,B,2026-10-30T12:11:00+00:00,
s004,Hedy,B,2026-10-31T13:00:00+01:00,
s005,Kurt,B,2026-11-01T11:00:00+00:00,
s006,Sofia,B,2026-11-20T12:00:00+00:00,
s007,Student Seven,B,2026-11-20T12:00:00+00:00,2026-11-20T12:00:00+00:00
"""


@pytest.mark.parametrize(
    ("late", "kept"),
    [
        ("grace_minutes = 10\nper_day = 10\nfloor = 50", [100, 100, 90, 90, 80, 50, 100]),
        ("per_day = 25", [100, 75, 75, 75, 50, 0, 100]),
        (
            "floor = 10\nsteps = [{days = 2, keeps = 50}, {days = 1, keeps = 75}]",
            [100, 75, 75, 75, 50, 10, 100],
        ),
        (None, [100] * 7),
    ],
)
def test_late_work_keeps_what_the_course_says(
    late: str | None, kept: list[int], cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tmp_path / "class.csv").write_text(ROSTER)
    text = LATE if late is None else f"{LATE}[late]\n{late}\n"
    (tiny_copy / "reference" / "course.toml").write_text(text)
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 4 points" for n in range(1, 8)})
    run(cli, tmp_path, "--course", tiny_copy, "--roster", tmp_path / "class.csv")
    expected = {f"s00{n}": f"{4 * keeps / 100:g}" for n, keeps in enumerate(kept, 1)}
    assert marks(tmp_path / "out") == expected
    report = report_of(tmp_path / "out", "s006")
    assert (report["points"], report["mark"]["points"]) == (4, 4 * kept[5] / 100)
    assert report["mark"]["late_days"] == 21
    assert f"handed in 21 days late: {kept[5]} % of them count" in report["mark"]["says"]
    assert report["person"]["name"] == "Sofia"
    assert report_of(tmp_path / "out", "s007")["mark"]["late_days"] == 0


@pytest.mark.slow
def test_a_change_of_the_late_rules_grades_nothing_again(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tmp_path / "class.csv").write_text(ROSTER)
    settings = tiny_copy / "reference" / "course.toml"
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": "# 4 points" for n in range(1, 8)})
    common = ("--course", tiny_copy, "--roster", tmp_path / "class.csv")
    settings.write_text(f"{LATE}[late]\nper_day = 10\n")
    run(cli, tmp_path, *common)
    assert marks(tmp_path / "out")["s002"] == "3.6"
    settings.write_text(f"{LATE}[late]\nper_day = 50\n")
    said = run(cli, tmp_path, *common)
    assert (said.code, "changed since: what a late day costs" in said.err) == (2, True)
    assert marks(tmp_path / "out")["s002"] == "3.6"
    regrade = ("regrade", "--in", tmp_path / "out", "--course", tiny_copy)
    assert "s002 (Student Two)       3.6 → 2      of 8" in cli(*regrade).out
    assert cli(*regrade, "--publish").code == 0
    assert marks(tmp_path / "out")["s002"] == "2"
    assert len(instant.jobs) == 1


def test_late_by_nobody_knows_how_much_is_one_day_and_one_line_of_the_class(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tiny_copy / "reference" / "course.toml").write_text(f"{LATE}[late]\nper_day = 10\n")
    texts = {"s001_LATE_11_101_scale.py": "# 4 points"}
    hand_in(tmp_path / "class", texts | {"s002_12_102_scale.py": "# 4 points"})
    said = run(cli, tmp_path, "--course", tiny_copy)
    assert "canvas layout: 2 students" in said.err
    assert marks(tmp_path / "out") == {"11": "3.6", "12": "4"}
    late = report_of(tmp_path / "out", "11")
    assert "late, and the platform does not say by how much: counted as one day" in late["notes"]
    assert late["flags"] == []
    remark = "1 of 2 students are late, and the platform does not say by how much"
    assert said.out.count(remark) == 1
    assert remark in (tmp_path / "out" / "index.html").read_text()
    assert report_of(tmp_path / "out", "12")["flags"] == []  # Canvas says who is late
    assert "no time of submission" not in said.out
    # Once the roster knows the time, it is no guess any more.
    (tmp_path / "class.csv").write_text("id,submitted\n11,2026-11-01T11:00:00+00:00\n")
    known = ("--roster", tmp_path / "class.csv", "--replace")
    said = run(cli, tmp_path, "--course", tiny_copy, *known)
    assert marks(tmp_path / "out") == {"11": "3.2", "12": "4"}
    notes = report_of(tmp_path / "out", "11")["notes"]
    assert "by how much" not in said.out + "".join(notes)


def test_an_extension_is_not_taken_back_by_a_platform_that_says_late(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tiny_copy / "reference" / "course.toml").write_text(f"{LATE}[late]\nper_day = 10\n")
    hand_in(tmp_path / "class", {"one_LATE_11_101_scale.py": "# 4 points"})
    hand_in(tmp_path / "class", {"two_12_102_scale.py": "# 4 points"})
    (tmp_path / "class.csv").write_text("id,due\n11,2026-12-24T18:00:00+00:00\n")
    said = run(cli, tmp_path, "--course", tiny_copy, "--roster", tmp_path / "class.csv")
    assert "students are late" not in said.out
    assert marks(tmp_path / "out") == {"11": "4", "12": "4"}
    assert "nothing was taken off" in report_of(tmp_path / "out", "11")["flags"][0]


# --- attempts, weights and the roster -------------------------------------------------------------

ATTEMPTS = {
    "s001_11_101_scale.py": "# 3 points",
    "s001_11_102_scale-1.py": "# 7 points",
    "s001_11_103_scale-2.py": "# 5 points",
    "s002_12_104_scale.py": "# 8 points",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "counts", "others"),
    [
        ("latest", ("5", 3), {}),
        ("first", ("3", 1), {}),
        ("best", ("7", 2), {1: 3, 3: 5}),
        ("all", ("5", 3), {1: 3, 2: 7}),
    ],
)
def test_of_several_attempts_the_one_counts_that_is_asked_for(
    which: str,
    counts: tuple[str, int],
    others: dict[int, int],
    cli: Cli,
    instant: Instant,
    tmp_path: Path,
) -> None:
    hand_in(tmp_path / "class", ATTEMPTS)
    said = run(cli, tmp_path, "--attempt", which)
    out = tmp_path / "out"
    assert marks(out) == {"11": counts[0], "12": "8"}
    assert report_of(out, "11")["attempt"] == counts[1]
    assert len(instant.jobs) == 2 + len(others)
    reports = {path.name for path in (out / "reports").glob("*.html")}
    assert reports == {"11.html", "12.html"} | {f"11.attempt-{n}.html" for n in others}
    for number, points in others.items():
        assert report_of(out, f"11.attempt-{number}")["points"] == points
    assert "2 submissions graded" in said.out
    # Another choice needs what is not graded yet, and nothing else; a change is seen before.
    if run(cli, tmp_path, "--attempt", "all").code == 2:
        assert marks(out)["11"] == counts[0] != "5"
        run(cli, tmp_path, "--attempt", "all", "--replace")
    assert len(instant.jobs) == 4
    assert marks(out) == {"11": "5", "12": "8"}


def test_the_best_of_attempts_is_the_best_after_lateness(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = dict(ATTEMPTS, **{"s001_11_103_scale-2.py": "# 7 points again"})
    hand_in(tmp_path / "class", texts)
    run(cli, tmp_path, "--attempt", "best")
    assert report_of(tmp_path / "out", "11")["attempt"] == 3  # the later of two equal ones


def test_weights_and_extra_credit(cli: Cli, instant: Instant, tmp_path: Path, pair: Path) -> None:
    settings = pair / "reference" / "course.toml"
    texts = {"s001/scale.py": "# 4 points", "s001/shift.py": "# 2 points"}
    hand_in(tmp_path / "class", texts | {"s002/scale.py": "# 8 points"})
    more = 'extra_credit = ["shift"]\n[weights]\nscale = 0.5\nshift = 3\n'
    settings.write_text(f'title = "A pair"\npoints = 10\n{more}')
    run(cli, tmp_path, "--course", pair)
    assert marks(tmp_path / "out") == {"s001": "8", "s002": "4"}
    mark = report_of(tmp_path / "out", "s001")["mark"]
    assert (mark["points"], mark["max_points"]) == (8, 4)
    assert mark["says"] == "8 points, weighted, with extra credit."
    line = next(csv.DictReader((tmp_path / "out" / "grades.csv").open(encoding="utf-8-sig")))
    assert (line["scale"], line["shift"], line["max_points"]) == ("4", "2", "4")


def test_the_roster_says_who_it_is_and_who_is_missing(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    roster = tmp_path / "class.csv"
    roster.write_text("id,name,section\ns001,Student One,A\ns002,Student Two,B\ns003,=cmd(),B\n")
    hand_in(tmp_path / "class", {"s001/scale.py": "# 1 points", "s004/scale.py": "# 2 points"})
    said = run(cli, tmp_path, "--roster", roster)
    assert "of the roster, 2 handed in nothing: s002 (Student Two); s003 (=cmd())" in said.err
    lines = list(csv.DictReader((tmp_path / "out" / "grades.csv").open(encoding="utf-8-sig")))
    assert [(row["submission"], row["name"], row["state"]) for row in lines] == [
        ("s001", "Student One", "to fix"),
        ("s002", "Student Two", "missing"),
        ("s003", "'=cmd()", "missing"),
        ("s004", "", "to fix"),
    ]
    assert "s003" in (tmp_path / "out" / "index.html").read_text()
    # Whoever comes later is no longer missing, though nobody else's report changes.
    before = state(tmp_path / "out" / "reports")
    roster.write_text("id,name,section\ns001,Student One,A\ns002,Student Two,B\n")
    run(cli, tmp_path, "--roster", roster)
    assert "s003" not in (tmp_path / "out" / "index.html").read_text()
    assert state(tmp_path / "out" / "reports") == before
