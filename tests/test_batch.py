"""A class is graded whole: whatever somebody hands in, everybody gets a report and a mark."""

from __future__ import annotations

import csv
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from classroom import Instant, events, grade_lines, hand_in, marks, report_of, rows
from commandline import Cli

from grader.sandbox.confinement import landlock
from grader.submissions.reader.exchange import ReadingImpossible
from grader.submissions.reader.host import ReaderTemplate
from grader.submissions.reader.messages import ReadingRefused

TINY = Path(__file__).parent / "tiny"


@pytest.fixture
def handed_in(tmp_path: Path, tiny_solution: str) -> Path:
    """A class in which everybody hands in otherwise."""
    folder = tmp_path / "class"

    def write(path: str, text: str = tiny_solution) -> Path:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        return folder / path

    write("s001/scale.py")
    write("s002/homework/final/scale.py")
    write("s003/scale.py", tiny_solution.replace("return x * factor", "return x * 2.0"))
    write("s004/notes.txt", "I have nothing to hand in")
    write("s005/a/scale.py")
    write("s005/b/scale.py")
    with zipfile.ZipFile(folder / "s006.zip", "w") as archive:
        archive.writestr("s006/scale.py", tiny_solution)
        archive.writestr("s006/.venv/lib/thing.bin", b"x")
    (folder / "s007.zip").write_bytes(b"PK\x03\x04 this is no zip")
    write("readme.md", "hello")
    os.symlink(folder / "s001", folder / "s008")
    return folder


def batch(cli: Cli, handed_in: Path, *more: object) -> Any:
    out = handed_in.parent / "out"
    return cli("batch", handed_in, "--out", out, "--course", TINY, "--seed", 5, *more)


def test_everybody_gets_a_report_and_a_mark(cli: Cli, handed_in: Path) -> None:
    said = batch(cli, handed_in)
    assert said.code == 1
    out = handed_in.parent / "out"
    lines = list(csv.DictReader((out / "grades.csv").open(encoding="utf-8-sig")))
    points_of = {row["submission"]: row["points"] for row in lines}
    assert points_of == {"s001": "8", "s002": "8", "s003": "6", "s004": "0", "s005": "0"} | {
        "s006": "8",
        "s007": "0",
    }
    for name, points in points_of.items():
        report = json.loads((out / "reports" / f"{name}.json").read_text())
        assert str(report["points"]) == points
        assert report["seed"] != 5  # whoever knows it knows nothing about the inputs
        for suffix in (".html", ".md"):
            assert (out / "reports" / f"{name}{suffix}").stat().st_size > 200
    assert "readme.md is neither a folder nor a zip and was left out" in said.err
    assert "s008 is a link and was left out" in said.err
    assert "  s003    6 / 8  first to fix: scale" in said.out
    assert "7 submissions graded" in said.out
    assert not [path for path in (out / "reports").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("s004", "no exercise file in s004"),
        ("s005", "several folders hold exercises, so none was used: a, b"),
        ("s007", "s007.zip: the archive cannot be read: File is not a zip file"),
    ],
)
def test_a_report_says_why_nothing_was_graded(
    name: str, advice: str, cli: Cli, handed_in: Path
) -> None:
    batch(cli, handed_in)
    report = json.loads((handed_in.parent / "out" / "reports" / f"{name}.json").read_text())
    assert advice in report["exercises"][0]["advice"]
    assert str(handed_in) not in json.dumps(report)


def test_nobody_takes_a_neighbours_name(cli: Cli, tmp_path: Path, tiny_solution: str) -> None:
    long = "n" * 250
    for name in ("s001", "S001", "=1+1", "\x01s001", "bob\nbob  10 of 10", long):
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "scale.py").write_text(tiny_solution)
    assert batch(cli, tmp_path / "class").code == 0
    reports = {path.stem for path in (tmp_path / "out" / "reports").glob("*.json")}
    assert {"S001", "s001", "=1+1"} < reports
    marked = {name.rpartition("-")[0] for name in reports - {"S001", "s001", "=1+1"}}
    assert marked == {"s001", "bob bob 10 of 10", "n" * 120}
    assert json.loads((tmp_path / "out" / "reports" / "s001.json").read_text())["points"] == 8
    assert "'=1+1,8,8," in (tmp_path / "out" / "grades.csv").read_text()


@pytest.mark.parametrize(
    ("submissions", "out", "said"),
    [
        ("nowhere", "out", "there is no folder"),
        ("empty", "out", "holds no submissions"),
        ("empty", "empty", "holds the submissions"),
    ],
)
def test_a_wrong_request_is_said_before_anything_is_written(
    submissions: str, out: str, said: str, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    answer = cli("batch", tmp_path / submissions, "--out", tmp_path / out, "--course", TINY)
    assert answer.code == 2
    assert said in answer.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(cli: Cli, handed_in: Path) -> None:
    (handed_in.parent / "out").write_text("a file")
    answer = cli("batch", handed_in, "--out", handed_in.parent / "out", "--course", TINY)
    assert answer.code == 2
    assert "out" in answer.err


def test_the_reports_name_the_confinement(cli: Cli, handed_in: Path) -> None:
    batch(cli, handed_in)
    report = json.loads((handed_in.parent / "out" / "reports" / "s001.json").read_text())
    assert report["confinement"] == [
        "separate process",
        "resource limits",
        "no privileges",
        "Landlock",
        "seccomp",
    ]
    page = (handed_in.parent / "out" / "reports" / "s001.html").read_text()
    assert "Landlock, seccomp" in page


def test_nothing_of_the_environment_reaches_a_report(
    cli: Cli, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "SECRET-TOKEN-VALUE")
    (handed_in / "s001" / "scale.py").write_text("import os\nprint(dict(os.environ))\n")
    batch(cli, handed_in)
    for path in (handed_in.parent / "out").rglob("*.*"):
        assert b"SECRET-TOKEN-VALUE" not in path.read_bytes()
    for (files,) in rows(handed_in.parent / "out", "SELECT files FROM submissions"):
        assert b"SECRET-TOKEN-VALUE" not in zlib.decompress(files)


def test_a_submission_that_cannot_be_opened_stops_nobody(
    cli: Cli, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ReaderTemplate.ask

    def denied(template: ReaderTemplate, job: Any, *more: Any, **options: Any) -> Any:
        if job.student == b"s002":
            raise ReadingImpossible(ReadingRefused("Permission denied: 's002'"))
        return real(template, job, *more, **options)

    monkeypatch.setattr(ReaderTemplate, "ask", denied)
    assert batch(cli, handed_in).code == 1
    report = report_of(handed_in.parent / "out", "s002")
    assert "Permission denied: 's002'" in report["exercises"][0]["advice"]
    assert (handed_in.parent / "out" / "reports" / "s006.json").exists()


def test_what_was_left_out_is_told_in_a_few_lines(
    cli: Cli, tmp_path: Path, tiny_solution: str
) -> None:
    (tmp_path / "class" / "s001").mkdir(parents=True)
    (tmp_path / "class" / "s001" / "scale.py").write_text(tiny_solution)
    for number in range(300):
        (tmp_path / "class" / "s001" / f"stray{number}.py").write_text("")
    batch(cli, tmp_path / "class")
    report = json.loads((tmp_path / "out" / "reports" / "s001.json").read_text())
    assert len(report["notes"]) == 21
    assert report["notes"][-1] == "and 280 more"


def test_a_course_that_student_code_could_read_is_refused(
    cli: Cli, instant: Instant, handed_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "readable", lambda: ("/usr/lib", str(TINY.parent)))
    said = batch(cli, handed_in)
    assert said.code == 2
    assert f"the course lies in {TINY.parent}, where student code may read" in said.err
    assert batch(cli, handed_in, "--isolation", "process").code == 1


# --- what needs no grading: slots that answer at once ---------------------------------------------


def run(cli: Cli, folder: Path, *more: object) -> Any:
    """Grade `folder`/class into `folder`/out, in the tiny course unless another is said."""
    course = [] if "--course" in more else ["--course", TINY]
    return cli("batch", folder / "class", "--out", folder / "out", "--seed", 5, *course, *more)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Of every file the time of its last change, and which file it is: one written anew differs."""
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("ledger.")
    }


def test_a_dry_run_tells_who_what_and_why_and_writes_nothing(
    cli: Cli, instant: Instant, handed_in: Path
) -> None:
    roster = handed_in.parent / "class.csv"
    roster.write_text("id,name\ns001,Student One\ns099,Student Two\n")
    before = state(handed_in.parent)
    said = batch(cli, handed_in, "--dry-run", "--roster", roster)
    assert (said.code, instant.jobs) == (0, [])
    assert state(handed_in.parent) == before
    assert not (handed_in.parent / "out").exists()
    assert "plain layout: 7 students" in said.err
    assert "s008 is a link and was left out" in said.err
    assert "of the roster, 1 handed in nothing: s099 (Student Two)" in said.err
    assert "  s001 (Student One): 1 of 1 exercises" in said.out
    assert "  s004: 0 of 1 exercises" in said.out
    assert "several folders hold exercises, so none was used: a, b" in " ".join(said.out.split())
    assert "nothing was graded: this was a dry run" in said.out


def test_the_same_command_again_grades_nothing_and_writes_nothing(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in range(1, 9)})
    hand_in(tmp_path / "class", {"s009/notes.txt": "nothing"})
    log = tmp_path / "log.jsonl"
    assert run(cli, tmp_path, "--log", log).code == 1
    found, before = rows(tmp_path / "out", "SELECT * FROM results"), state(tmp_path / "out")
    assert len(found) == len(instant.jobs) == 8
    assert run(cli, tmp_path, "--log", log).code == 1
    assert cli("batch", "--resume", "--out", tmp_path / "out", "--course", TINY).code == 1
    assert rows(tmp_path / "out", "SELECT * FROM results") == found
    assert rows(tmp_path / "out", "SELECT count(*) FROM runs") == [(1,)]
    assert len(instant.jobs) == 8
    assert state(tmp_path / "out") == before
    graded = [event["student"] for event in events(log) if event["event"] == "graded"]
    assert graded == [f"s00{n}" for n in range(1, 9)]


def test_a_page_that_is_gone_is_written_again(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in range(1, 4)})
    run(cli, tmp_path)
    gone = [
        *(tmp_path / "out" / "reports" / f"s002{suffix}" for suffix in (".html", ".json", ".md")),
        *(tmp_path / "out" / name for name in ("grades.csv", "results.jsonl", "index.html")),
    ]
    before = state(tmp_path / "out")
    for path in gone:
        path.unlink()
        run(cli, tmp_path)
        assert path.stat().st_size > 10
    others = [str(path) for path in (tmp_path / "out" / "reports").glob("s001*")]
    assert {path: before[path] for path in others} == {
        path: state(tmp_path / "out")[path] for path in others
    }
    assert len(instant.jobs) == 3


def test_a_submission_that_two_hand_in_is_graded_once(
    cli: Cli, instant: Instant, tmp_path: Path, pair: Path
) -> None:
    same = {"scale.py": "# 3 points", "shift.py": "# 2 points"}
    for student in ("s001", "s002"):
        hand_in(tmp_path / "class" / student, same)
    # Two more with the same files, but one of them has a file that cannot be read besides.
    hand_in(tmp_path / "class" / "s003", {"scale.py": "# 4 points"})
    hand_in(tmp_path / "class" / "s004", {"scale.py": "# 4 points"})
    (tmp_path / "class" / "s004" / "shift.py").write_bytes(b"\xff")
    assert run(cli, tmp_path, "--course", pair).code == 1
    assert instant.graded == [("s001", ("scale", "shift")), ("s003", ("scale",))]
    assert marks(tmp_path / "out") == {"s001": "5", "s002": "5", "s003": "4", "s004": "4"}
    for number in range(1, 5):
        report = report_of(tmp_path / "out", f"s00{number}")
        assert report["submission"] == f"s00{number}"
        assert (tmp_path / "out" / "reports" / f"s00{number}.html").exists()


def test_what_cannot_be_read_counts_nothing_and_is_left_to_a_person(
    cli: Cli, handed_in: Path
) -> None:
    (handed_in / "s003" / "scale.py").write_bytes(b"\xc3(")
    (handed_in / "s009").mkdir()
    said = batch(cli, handed_in)
    out = handed_in.parent / "out"
    told = {
        "s003": "could not be read: scale.py is not UTF-8",
        "s004": "could not be read: no exercise file in s004",
        "s005": "could not be read: no exercise file in s005; several folders hold exercises",
        "s007": "could not be read: s007.zip: the archive cannot be read",
        "s009": "could not be read: no file was handed in",
    }
    lines = grade_lines(out)
    assert [name for name, row in lines.items() if row["flags"]] == list(told)
    for name, why in told.items():
        assert lines[name]["flags"].startswith(why)
        assert lines[name]["points"] == "0"
        assert report_of(out, name)["flags"] == [lines[name]["flags"]]
        assert f"  {name}    0 / 8  ! could not be read: " in said.out
    assert report_of(out, "s001")["flags"] == []


def test_a_class_of_whom_nothing_can_be_read_gets_its_reports(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/notes.txt": "x", "s002/notes.txt": "y"})
    for _ in range(2):
        assert run(cli, tmp_path).code == 1
        assert marks(tmp_path / "out") == {"s001": "0", "s002": "0"}
        assert report_of(tmp_path / "out", "s002")["flags"]
    assert instant.jobs == []


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
    assert (said.code, "its rules" in said.err) == (2, True)
    assert marks(tmp_path / "out")["s002"] == "3.6"
    regrade = ("regrade", "--in", tmp_path / "out", "--course", tiny_copy)
    assert "s002 (Student Two)       3.6 → 2      of 8" in cli(*regrade).out
    assert cli(*regrade, "--publish").code == 0
    assert marks(tmp_path / "out")["s002"] == "2"
    assert len(instant.jobs) == 1


def test_late_by_nobody_knows_how_much_is_left_to_a_person(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tiny_copy / "reference" / "course.toml").write_text(f"{LATE}[late]\nper_day = 10\n")
    texts = {"s001_LATE_11_101_scale.py": "# 4 points"}
    hand_in(tmp_path / "class", texts | {"s002_12_102_scale.py": "# 4 points"})
    said = run(cli, tmp_path, "--course", tiny_copy)
    assert "canvas layout: 2 students" in said.err
    assert marks(tmp_path / "out") == {"11": "3.6", "12": "4"}
    flags = report_of(tmp_path / "out", "11")["flags"]
    assert flags == [
        "late, and the platform does not say by how much: counted as one day",
    ]
    assert report_of(tmp_path / "out", "12")["flags"] == [
        "no time of submission is known, so lateness was not counted"
    ]
    # Once the roster knows the time, it is no guess any more.
    (tmp_path / "class.csv").write_text("id,submitted\n11,2026-11-01T11:00:00+00:00\n")
    run(cli, tmp_path, "--course", tiny_copy, "--roster", tmp_path / "class.csv", "--replace")
    assert marks(tmp_path / "out") == {"11": "3.2", "12": "4"}
    assert report_of(tmp_path / "out", "11")["flags"] == []


ATTEMPTS = {
    "s001_11_101_scale.py": "# 3 points",
    "s001_11_102_scale-1.py": "# 7 points",
    "s001_11_103_scale-2.py": "# 5 points",
    "s002_12_104_scale.py": "# 8 points",
}


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


def test_whoever_has_left_the_class_has_left_its_marks(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (1, 2, 3)})
    run(cli, tmp_path)
    (tmp_path / "class" / "s002" / "scale.py").unlink()
    (tmp_path / "class" / "s002").rmdir()
    run(cli, tmp_path, "--replace")
    assert marks(tmp_path / "out") == {"s001": "1", "s003": "3"}
    hand_in(tmp_path / "class", {"s002/scale.py": "# 2 points"})
    run(cli, tmp_path)
    assert marks(tmp_path / "out") == {"s001": "1", "s002": "2", "s003": "3"}
    assert len(instant.jobs) == 3


def test_who_hands_in_again_is_graded_again_and_nobody_else(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (1, 2, 3)})
    run(cli, tmp_path)
    hand_in(tmp_path / "class", {"s002/scale.py": "# 8 points"})
    run(cli, tmp_path, "--replace")
    assert [name for name, _ in instant.graded] == ["s001", "s002", "s003", "s002"]
    assert marks(tmp_path / "out") == {"s001": "1", "s002": "8", "s003": "3"}


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


PROBES = '''
from grader.probing import probe

@probe("values")
def thrice(student, rng):
    """A factor of 3."""
    return student.scale(rng.randn(4, 5), 3.0)
'''


def test_students_see_what_the_course_shows(
    cli: Cli, handed_in: Path, tmp_path: Path, tiny_copy: Path
) -> None:
    settings = tiny_copy / "reference" / "course.toml"
    (tiny_copy / "reference" / "scale" / "probes.py").write_text(PROBES)
    base = 'title = "A tiny course"\npoints = 8\n'
    wrong = tmp_path / "out" / "reports" / "s003.json"
    shown: dict[str, Any] = {}
    for show in ("", '[show]\ndiagnosis = "never"\n', '[show]\ntests = "never"\nidea = "never"\n'):
        settings.write_text(base + show)
        cli("batch", handed_in, "--out", tmp_path / "out", "--course", tiny_copy, "--seed", 5)
        shown[show] = json.loads(wrong.read_text())["exercises"][0]
    everything, no_diagnosis, no_tests = shown.values()
    assert everything["diagnosis"]["faults"] == ["factor_capped"]
    assert no_diagnosis["diagnosis"] is None
    assert any(test["message"] for test in no_diagnosis["tests"])
    assert {test["name"] for test in no_tests["tests"]} == {"hidden"}
    assert not any(test["message"] for test in no_tests["tests"])
    assert marks(tmp_path / "out")["s003"] == "6"
    # What students do not see, the teacher's own list has.
    line = next(
        json.loads(text)
        for text in (tmp_path / "out" / "results.jsonl").read_text().splitlines()
        if json.loads(text)["submission"] == "s003"
    )
    assert "test_thrice" in {test["name"] for test in line["exercises"][0]["tests"]}


def test_results_beneath_the_submissions_are_none_of_them(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 1 points"})
    out = tmp_path / "class" / "results"
    for shard in ((), ("--shard", "1/1")):
        for _ in range(2):
            said = cli(
                "batch", tmp_path / "class", "--out", out, "--course", TINY, "--seed", 5, *shard
            )
            assert "plain layout: 1 student\n" in said.err
    said = cli("batch", out, "--out", out, "--shard", "1/1", "--seed", 5, "--course", TINY)
    assert (said.code, "holds the submissions" in said.err) == (2, True)


def test_a_log_that_cannot_be_written_is_named(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 1 points"})
    said = run(cli, tmp_path, "--log", tmp_path / "nowhere" / "log.jsonl")
    assert said.code == 2
    assert f"cannot write {tmp_path / 'nowhere' / 'log.jsonl'}: No such file" in said.err


def test_who_hands_in_the_same_does_not_read_what_another_calls_it(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    text = "# 3 points\ndef scale(x, factor):\n    return x\n"
    hand_in(tmp_path / "class", {"s001/by_s001_alone.py": text, "s002/hw.py": text})
    run(cli, tmp_path)
    assert len(instant.jobs) == 1
    places = {
        student: report_of(tmp_path / "out", student)["exercises"][0]["tests"][0]["where"]["file"]
        for student in ("s001", "s002")
    }
    assert places == {"s001": "by_s001_alone.py", "s002": "hw.py"}


def test_resume_takes_nothing_new(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 3 points"})
    run(cli, tmp_path)
    for more in ([tmp_path / "class"], ["--attempt", "best"], ["--layout", "canvas"]):
        said = cli("batch", *more, "--resume", "--out", tmp_path / "out", "--course", TINY)
        assert said.code == 2
        assert "--resume continues with what was handed in then" in said.err
    assert cli("batch", "--resume", "--out", tmp_path / "out", "--course", TINY).code == 1


def test_hidden_files_of_others_stay(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 3 points"})
    hand_in(tmp_path / "out", {".2026-notes.md": "mine", ".4711.html": "half a page"})
    run(cli, tmp_path)
    assert (tmp_path / "out" / ".2026-notes.md").read_text() == "mine"
    assert not (tmp_path / "out" / ".4711.html").exists()


def test_an_extension_is_not_taken_back_by_a_platform_that_says_late(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tiny_copy / "reference" / "course.toml").write_text(f"{LATE}[late]\nper_day = 10\n")
    hand_in(tmp_path / "class", {"one_LATE_11_101_scale.py": "# 4 points"})
    hand_in(tmp_path / "class", {"two_12_102_scale.py": "# 4 points"})
    (tmp_path / "class.csv").write_text("id,due\n11,2026-12-24T18:00:00+00:00\n")
    run(cli, tmp_path, "--course", tiny_copy, "--roster", tmp_path / "class.csv")
    assert marks(tmp_path / "out") == {"11": "4", "12": "4"}
    assert "nothing was taken off" in report_of(tmp_path / "out", "11")["flags"][0]
