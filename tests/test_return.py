"""`grader return` gives back what students may see, and overwrites nothing."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from classroom import TINY, Instant, hand_in, rows
from feedback import BY_MAIL, IN_MOODLE, ROSTER, TEAM, WORKSHEET, Home, body, inside, mails

from grader.classroom.workers.messages import Job
from grader.report import ExerciseResult, Report
from grader.reports import render

# --- what may go back -----------------------------------------------------------------------------


@pytest.fixture
def telling(instant: Instant, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose failures say more than their sentence."""
    plain = instant._result

    def result(name: str, job: Job) -> ExerciseResult:
        made = plain(name, job)
        tests = tuple(replace(test, message="WHAT DIFFERS") for test in made.tests)
        return replace(made, tests=tests)

    monkeypatch.setattr(instant, "_result", result)


DUE = "due = 2999-01-01T00:00:00Z\n"
PEOPLE = "id,email\n3001,a@school.example\n3002,b@school.example\n"


@pytest.mark.usefixtures("telling")
@pytest.mark.parametrize(
    ("show", "sentence", "details"),
    [("always", True, True), ("after_due", True, False), ("never", False, False)],
)
def test_what_the_course_hides_is_in_no_feedback(
    show: str, sentence: bool, details: bool, home: Home, tiny_copy: Path
) -> None:
    settings = tiny_copy / "reference" / "course.toml"
    plain = settings.read_text()
    settings.write_text(f"{DUE}{plain}")
    home = replace(home, course=tiny_copy).batch(IN_MOODLE, PEOPLE)
    # The pages on the disk show all, as they were written when the course did.
    assert "WHAT DIFFERS" in home.page("3001")
    settings.write_text(f'{DUE}{plain}\n[show]\ntests = "{show}"\n')
    sheet = home.folder / "sheet.csv"
    sheet.write_text(WORKSHEET.format("", "", "", ""))
    assert home.back("moodle", "--worksheet", sheet).code == 0
    assert home.back("mail", *TEAM).code == 0
    (mail, _) = mails(home.out / "mails.mbox")
    (attached,) = mail.iter_attachments()
    pages = [
        *inside(home.out / "feedback.zip").values(),
        (home.out / "mails-reports" / "3001.html").read_text(),
        attached.get_content(),
    ]
    short = [
        body(mail),
        *((home.out / name).read_text() for name in ("sheet-graded.csv", "mails.csv")),
    ]
    assert [("WHAT DIFFERS" in page) for page in pages] == [details] * 4
    assert [("All of it." in text) for text in (*pages, *short)] == [sentence] * 7
    assert "WHAT DIFFERS" not in "".join(short)


def test_marks_that_changed_since_are_not_given_back(home: Home, tiny_copy: Path) -> None:
    home = replace(home, course=tiny_copy).batch(IN_MOODLE)
    home.cli("adjust", "3001", "scale", "+1", "--why", "x", "--in", home.out, "--course", tiny_copy)
    assert home.back("moodle", "--out", home.folder / "one.zip").code == 0
    hidden = tiny_copy / "reference" / "scale" / "test_hidden.py"
    hidden.write_text(hidden.read_text() + "\n# changed\n")
    for way in (["moodle"], ["mail", *TEAM]):
        said = home.back(*way)
        assert said.code == 2
        assert "3001 (One A); 3002 (Two B)" in said.err
        assert "grader regrade" in said.err
    assert not (home.out / "feedback.zip").exists()


@pytest.mark.slow
def test_students_who_are_not_graded_yet_are_listed(home: Home, instant: Instant) -> None:
    texts = {
        f"Name_{n}_assignsubmission_file/scale.py": f"# 5 points\n# {n}" for n in range(3001, 3021)
    }

    def stopping(job: Job) -> None:
        if job.submission.name == "3020":
            raise KeyboardInterrupt

    instant.before = stopping
    hand_in(home.folder / "class", texts)
    options = "--out", home.out, "--course", TINY
    assert home.cli("batch", home.folder / "class", *options).code == 130
    published = [student for (student,) in rows(home.out, "SELECT student FROM published")]
    assert 0 < len(published) < 20
    said = home.back("moodle")
    assert said.code == 0
    waiting = sorted({str(n) for n in range(3001, 3021)} - set(published))
    who = "; ".join(f"{student} (Name)" for student in waiting)
    assert f"not graded and published yet, {len(waiting)}: {who}\n" in said.out
    assert len(inside(home.out / "feedback.zip")) == len(published)


def test_one_page_that_breaks_stops_nobody_else(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.batch(IN_MOODLE, "id,email\n3001,a@school.example\n3002,b@school.example\n")

    def breaking(report: Report, form: str) -> str:
        if report.submission == "3001":
            raise ValueError("no page")
        return render(report, form)

    monkeypatch.setattr("grader.commands.returning.render", breaking)
    for way in (["moodle"], ["mail", *TEAM]):
        said = home.back(*way)
        assert said.code == 1
        assert (
            "3001 (One A): the grader failed here (ValueError: no page); needs review" in said.err
        )
    assert len(inside(home.out / "feedback.zip")) == 1
    assert len(mails(home.out / "mails.mbox")) == 1


def test_stopping_leaves_nothing_half_written(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.batch(IN_MOODLE, PEOPLE)
    before = {path for path in home.out.rglob("*") if path.is_file()}

    def stopping(report: Report, form: str) -> str:
        if report.submission == "3002":
            raise KeyboardInterrupt
        return render(report, form)

    monkeypatch.setattr("grader.commands.returning.render", stopping)
    for way in (["moodle"], ["mail", *TEAM]):
        assert home.back(*way).code == 130
        assert {path for path in home.out.rglob("*") if path.is_file()} == before


def test_a_class_of_another_platform_is_refused(home: Home) -> None:
    home.batch(IN_MOODLE)
    said = home.back("canvas")
    assert said.code == 2
    assert "did not come from Canvas: its layout was moodle" in said.err


def test_a_ledger_that_does_not_know_the_names_says_what_to_do(home: Home) -> None:
    home.batch(IN_MOODLE)
    with contextlib.closing(sqlite3.connect(home.out / "ledger.sqlite")) as db:
        db.execute("DELETE FROM origins")
        db.commit()
    said = home.back("moodle")
    assert said.code == 2
    assert "does not hold the file names of Moodle's download" in said.err
    assert "grader batch SUBMISSIONS" in said.err
    home.batch({})
    assert home.back("moodle").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("mail",), "who sends the mails"),
        (("moodle", *TEAM), "--from is for mails"),
        (("canvas", "--worksheet", "x.csv"), "--worksheet is Moodle's"),
        (("moodle", "--scale"), "are for a worksheet"),
    ],
)
def test_an_option_of_another_way_is_refused(
    options: tuple[str, ...], message: str, home: Home
) -> None:
    said = home.back(*options)
    assert said.code == 2
    assert message in said.err


# --- what is not overwritten ----------------------------------------------------------------------


def test_files_that_exist_are_replaced_only_by_force(home: Home) -> None:
    home.batch(BY_MAIL, ROSTER)
    for name in ("mails.mbox", "mails.csv", "mails-reports/s003.html"):
        place = home.out / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("mine")
        said = home.back("mail", *TEAM)
        assert said.code == 2
        assert f"{place} exists already" in said.err
        assert place.read_text() == "mine"
        assert home.back("mail", *TEAM, "--force").code == 0
        assert place.read_text() != "mine"
        for written in ("mails.mbox", "mails.csv", "mails-reports/s001.html"):
            (home.out / written).unlink()
        (home.out / "mails-reports" / "s003.html").unlink()


def test_what_is_read_is_never_overwritten(home: Home) -> None:
    home.batch(IN_MOODLE)
    sheet = home.folder / "sheet.csv"
    sheet.write_text(WORKSHEET.format("", "", "", ""))
    (home.folder / "link.csv").symlink_to(sheet)
    ledger = (home.out / "ledger.sqlite").read_bytes()
    before = sheet.read_bytes()
    for options in (
        ("--out", sheet, "--worksheet", sheet),
        ("--worksheet", sheet, "-o", sheet),
        ("--worksheet", sheet, "-o", home.folder / "link.csv"),
        ("--worksheet", sheet, "-o", home.folder / "x.zip", "--out", home.folder / "x.zip"),
        ("--out", home.out / "ledger.sqlite"),
        ("--out", home.out / "ledger.sqlite-wal"),
    ):
        said = home.back("moodle", *options, "--force")
        assert said.code == 2, options
        assert "another file to write" in said.err
    assert sheet.read_bytes() == before
    assert (home.out / "ledger.sqlite").read_bytes() == ledger
