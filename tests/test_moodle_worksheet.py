"""The times in Moodle's worksheet: when a submission came, in every language and spelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from class_lists import (
    COURSE,
    HEADERS,
    NO_TIME,
    TIMES,
    batch,
    flags,
    late_days,
    moodle_class,
    worksheet,
)
from classroom import Instant, hand_in, marks, report_of
from commandline import Cli


@pytest.mark.parametrize("language", HEADERS)
def test_the_times_of_moodles_worksheet_count_in_every_language(
    language: str, cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    moodle_class(tmp_path, 2)
    said = batch(cli, tmp_path, strict, roster=worksheet(language, TIMES[language], "-"))
    assert "moodle layout: 2 students" in said.err
    assert marks(tmp_path / "out") == {"71": "4", "72": "8"}
    assert late_days(tmp_path, "71") == 2  # days begun
    assert flags(tmp_path, "71") == []
    assert flags(tmp_path, "72") == []
    assert f"! {NO_TIME.format('1 of 2 students', '72 (Student 2)')}\n" in said.out
    assert report_of(tmp_path / "out", "71")["person"]["name"] == "Student 1"
    # Their groups are those of the course, in which everybody hands in alone.
    assert "hand-ins of one group" not in said.err


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "cp1252", "utf-8; sep=;", "cp1252; tabs"]
)
def test_a_worksheet_may_have_been_through_a_spreadsheet(
    encoding: str, cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    moodle_class(tmp_path, 1)
    text = worksheet("de", TIMES["de"]).replace(TIMES["de"], "13.11.2026 22:05")
    if "sep=" in encoding:
        text = "sep=;\r\n" + text.replace(",", ";")
    if "tabs" in encoding:
        text = text.replace(",", "\t")
    batch(cli, tmp_path, strict, roster=text.encode(encoding.partition(";")[0]))
    assert marks(tmp_path / "out") == {"71": "4"}
    assert report_of(tmp_path / "out", "71")["person"]["email"] == "s001@school.example"


def test_a_time_that_cannot_be_read_is_never_on_time(
    cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    moodle_class(tmp_path, 3)
    unread = "sometime in spring"
    said = batch(cli, tmp_path, strict, roster=worksheet("en", TIMES["en"], unread, "-"))
    why = f"line 3 of the roster gives `{unread}` as time of submission, which cannot be read"
    assert f"72 (Student 2): {why}" in said.err
    assert flags(tmp_path, "72") == [f"{why} as a date and time"]
    assert flags(tmp_path, "73") == []
    who = "72 (Student 2); 73 (Student 3)"
    assert f"! {NO_TIME.format('2 of 3 students', who)}\n" in said.out


def test_dates_in_a_worksheet_are_read_in_the_order_that_they_prove(
    cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    moodle_class(tmp_path, 2)
    proven = worksheet("en", "11/13/26, 10:05 PM", "11/12/26, 11:00 AM")
    batch(cli, tmp_path, strict, roster=proven)
    assert marks(tmp_path / "out") == {"71": "4", "72": "8"}
    assert [flags(tmp_path, name) for name in ("71", "72")] == [[], []]


@pytest.mark.parametrize("layout", ["plain", "canvas", "moodle", "gradescope", "clones"])
def test_times_that_nobody_knows_are_one_line_a_class_if_lateness_costs_points(
    layout: str, cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    names = {
        "canvas": "s001_71_101_scale.py",
        "moodle": "Student_71_assignsubmission_file/scale.py",
        "gradescope": "submission_71/scale.py",
    }
    hand_in(tmp_path / "class", {names.get(layout, "71/scale.py"): "# 8 points"})
    if layout == "clones":
        (tmp_path / "class" / "71" / ".git").mkdir()
    said = batch(cli, tmp_path, strict)
    assert f"{layout} layout" in said.err
    who = report_of(tmp_path / "out", "71")["person"]["name"]
    line = NO_TIME.format("1 of 1 students", f"71 ({who})" if who else "71")
    page = tmp_path / "out" / "index.html"
    # Canvas says who is late, so that everybody else is not.
    assert (f"! {line}\n" in said.out, line in page.read_text()) == (layout != "canvas",) * 2
    assert [flag for flag in flags(tmp_path, "71") if "lateness" in flag] == []
    (strict / "reference" / "course.toml").write_text(COURSE)  # lateness costs nothing
    cli("regrade", "--in", tmp_path / "out", "--course", strict, "--publish")
    assert line not in page.read_text()
