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
    for points, mark in (("+2", 7), ("-1", 4), ("-1.5", 3.5), ("1", 6)):
        adjust(cli, handed_in, pair, "s003", "scale", points)
        assert report_of(out(handed_in), "s003")["mark"]["points"] == mark
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
