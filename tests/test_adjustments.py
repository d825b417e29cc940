"""An adjustment by hand counts, is explained, and survives whatever is graded again."""

from __future__ import annotations

from pathlib import Path

import pytest
from classroom import Instant, hand_in, marks, report_of, rows
from commandline import Cli
from regrading import adjust, batch, out, pages, regrade, touch

from grader.classroom.stored import marks as stored_marks


def test_an_adjustment_stands_in_the_report_and_counts(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    others = {name: text for name, text in pages(handed_in).items() if "s00" in name}
    said = adjust(cli, handed_in, pair, "s003", "scale", "+2.5", why="right idea, one sign")
    assert (said.code, "s003  7.5 / 10" in said.out) == (0, True)
    report = report_of(out(handed_in), "s003")
    scale, shift = report["exercises"]
    assert scale["adjustment"] == {"points": 2.5, "why": "right idea, one sign"}
    assert (scale["points"], shift["adjustment"]) == (3, None)
    assert (report["points"], report["mark"]["points"]) == (5, 7.5)
    assert marks(out(handed_in))["s003"] == "7.5"
    page = (out(handed_in) / "reports" / "s003.html").read_text()
    assert "right idea, one sign" in page
    assert "3 +2.5 / 8" in page
    after = pages(handed_in)
    assert [name for name in others if after[name] != others[name]] == [
        name for name in others if "s003" in name
    ]


def test_an_adjustment_of_other_work_is_flagged_where_it_leaves_the_range(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    adjust(cli, handed_in, pair, "s003", "scale", "+2")
    assert report_of(out(handed_in), "s003")["flags"] == []
    hand_in(handed_in, {"s003/scale.py": "# 8 points\n"})
    batch(cli, handed_in, pair, "--replace")
    flags = report_of(out(handed_in), "s003")["flags"]
    assert "scale counts 10 of 8 points, as it was adjusted; needs review" in flags


@pytest.mark.slow
def test_the_last_adjustment_counts_and_zero_takes_it_back(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    before = pages(handed_in)
    for points, mark, shown in (
        ("+2", 7, "3 +2 / 8"),
        ("-1", 4, "3 −1 / 8"),
        ("-1.5", 3.5, "3 −1.5 / 8"),  # "3 -1.5" would be a range
        ("1", 6, "3 +1 / 8"),
    ):
        adjust(cli, handed_in, pair, "s003", "scale", points)
        assert report_of(out(handed_in), "s003")["mark"]["points"] == mark
        for form in ("html", "md"):
            assert shown in (out(handed_in) / "reports" / f"s003.{form}").read_text()
    adjust(cli, handed_in, pair, "s003", "shift", "-2")
    assert report_of(out(handed_in), "s003")["mark"]["points"] == 4
    adjust(cli, handed_in, pair, "s003", "scale", "0", why="taken back")
    adjust(cli, handed_in, pair, "s003", "shift", "0", why="taken back")
    assert pages(handed_in) == before
    assert rows(out(handed_in), "SELECT count(*) FROM adjustments") == [
        (7,)
    ]  # nothing is forgotten


def test_a_clock_that_is_set_back_loses_no_adjustment(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch(cli, handed_in, pair)
    for year, points, mark in ((2031, "+2", 7), (2001, "+1", 6), (1999, "0", 5)):
        monkeypatch.setattr(
            stored_marks, "now", lambda year=year: f"{year}-01-01T00:00:00.000+00:00"
        )
        assert adjust(cli, handed_in, pair, "s003", "scale", points).code == 0
        assert report_of(out(handed_in), "s003")["mark"]["points"] == mark


@pytest.mark.slow
def test_adjustments_survive_every_regrade(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    adjust(cli, handed_in, pair, "s003", "scale", "+2", why="kind")
    touch(pair, "scale")
    assert "0 change, 4 stay" in regrade(cli, handed_in, pair, "--publish").out
    assert regrade(cli, handed_in, pair, "--again", "s003", "--publish").code == 0
    assert batch(cli, handed_in, pair).code == 1
    report = report_of(out(handed_in), "s003")
    assert report["exercises"][0]["adjustment"] == {"points": 2, "why": "kind"}
    assert marks(out(handed_in))["s003"] == "7"
    hand_in(handed_in, {"s003/scale.py": "# 5 points"})  # and whatever is handed in next
    batch(cli, handed_in, pair, "--replace")
    assert marks(out(handed_in))["s003"] == "9"


def test_an_adjustment_while_the_student_waits_is_kept(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    touch(pair, "scale")
    said = adjust(cli, handed_in, pair, "s003", "scale", "+2")
    assert (said.code, "kept, but not published" in said.out) == (0, True)
    said = regrade(cli, handed_in, pair, "--publish")
    assert "s003       5 → 7      of 10  scale +2" in said.out
    assert marks(out(handed_in))["s003"] == "7"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (("s0003", "scale", "+2"), "nobody called `s0003` has handed in; did you mean `s003`?"),
        (("s003", "scael", "+2"), "there is no exercise `scael`; did you mean `scale`?"),
        (("s003", "scale", "two"), "two"),
        (("s003", "scale", "nan"), "nan is not a number of points"),
        (("s003", "scale", "inf"), "inf is not a number of points"),
    ],
)
def test_a_wrong_adjustment_is_refused(
    what: tuple[str, ...], said: str, cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    before = pages(handed_in)
    answer = adjust(cli, handed_in, pair, *what)
    assert (answer.code, said in answer.err) == (2, True)
    assert rows(out(handed_in), "SELECT * FROM adjustments") == []
    assert pages(handed_in) == before


def test_a_file_of_a_german_spreadsheet_is_read(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    text = (
        "student;exercise;points;why\r\ns003;scale;+1,5;für den Ansatz\r\ns004;final;−0,25;spät\r\n"
    )
    before = marks(out(handed_in))
    utf8 = handed_in.parent / "utf8.csv"
    utf8.write_bytes(b"\xef\xbb\xbf" + text.encode())
    place = ("--in", out(handed_in), "--course", pair, "--yes")
    assert cli("adjust", "--file", utf8, *place).code == 0
    after = marks(out(handed_in))
    assert float(after["s003"]) == float(before["s003"]) + 1.5
    assert float(after["s004"]) == float(before["s004"]) - 0.25
    report = report_of(out(handed_in), "s003")
    assert report["exercises"][0]["adjustment"] == {"points": 1.5, "why": "für den Ansatz"}
    (handed_in.parent / "thousand.csv").write_text(text.replace("+1,5", "1,500"))
    said = cli("adjust", "--file", handed_in.parent / "thousand.csv", *place)
    assert (said.code, "thousand.csv:2: 1,500 is not a number of points" in said.err) == (2, True)


def test_a_mark_that_nobody_was_told_is_explained_as_such(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    batch(cli, handed_in, pair)
    settings = pair / "reference" / "course.toml"
    settings.write_text(settings.read_text() + "[weights]\nshift = 3\n")
    said = cli("explain", "s001", "--in", out(handed_in), "--course", pair).out
    # s001 has 1 of 8 points in `scale` and all 2 in `shift`, which now count three times.
    line = "unpublished 7 points as told here, after a change of the weights; published is 3 of 10"
    assert line in said
    assert f"grader regrade --in {out(handed_in)} shows who changes, and publishes it" in said
    assert "exported    3 in grades.csv\n" in said
    regrade(cli, handed_in, pair, "--publish")
    said = cli("explain", "s001", "--in", out(handed_in), "--course", pair).out
    assert "unpublished" not in said
    assert "exported    7 by grader export, and in grades.csv" in said


def test_the_seed_that_was_asked_for_stands_beside_the_one_that_reports_print(
    cli: Cli, instant: Instant, handed_in: Path, pair: Path
) -> None:
    said = batch(cli, handed_in, pair)
    seed = report_of(out(handed_in), "s001")["seed"]
    assert f"seed {seed} (of --seed 5)\n" in said.out
