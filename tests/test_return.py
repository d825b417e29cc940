"""Feedback gets home: what `grader return` writes for Moodle, for Canvas and as mails."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import mailbox
import os
import re
import sqlite3
import stat
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from classroom import TINY, Instant, hand_in, rows
from commandline import Cli, Said
from handed_in import zipped

from grader.classroom.workers.messages import Job
from grader.report import ExerciseResult, Report
from grader.reports import render

MOODLE = "One A_3001_assignsubmission_file", "Two B_3002_assignsubmission_file_"
CANVAS = "onea_7001_8001_scale.py", "twob_LATE_7002_8002_scale.py"


def names(out: Path) -> dict[tuple[str, int], tuple[str, list[str]]]:
    """Where the ledger says that each attempt lay in the download."""
    found = rows(out, "SELECT student, number, layout, names FROM origins")
    return {(student, number): (layout, json.loads(at)) for student, number, layout, at in found}


# --- where attempts lay ---------------------------------------------------------------------------


@pytest.mark.parametrize("is_zip", [False, True])
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            [f"{name}/scale.py" for name in MOODLE],
            {("3001", 1): ("moodle", [MOODLE[0]]), ("3002", 1): ("moodle", [MOODLE[1]])},
        ),
        (
            [*CANVAS, "onea_7001_8003_scale-1.py"],
            {
                ("7001", 1): ("canvas", [CANVAS[0]]),
                ("7001", 2): ("canvas", ["onea_7001_8003_scale-1.py"]),
                ("7002", 1): ("canvas", [CANVAS[1]]),
            },
        ),
        (
            ["s001/scale.py", "s002.py"],
            {
                ("s001", 1): ("plain", ["s001"]),
                ("s002", 1): ("plain", ["s002.py"]),
            },
        ),
    ],
)
def test_the_ledger_knows_the_names_in_the_download(
    files: list[str], expected: object, is_zip: bool, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = dict.fromkeys(files, "# 6 points")
    folder = hand_in(tmp_path / "class", texts)
    given = zipped(tmp_path / "class.zip", texts) if is_zip else folder
    cli("batch", given, "--out", tmp_path / "out", "--course", TINY)
    assert names(tmp_path / "out") == expected


def test_merged_parts_know_the_names_in_the_download(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    folder = hand_in(tmp_path / "class", {f"{name}/scale.py": "# 6 points" for name in MOODLE})
    out = tmp_path / "out"
    for part in ("1/2", "2/2"):
        options = "--seed", 5, "--shard", part, "--course", TINY
        cli("batch", folder, "--out", out, *options)
    cli("merge", out, "--course", TINY)
    assert names(out).keys() == {("3001", 1), ("3002", 1)}


# --- what goes back -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Home:
    """A class that was graded, in a folder of its own."""

    cli: Cli
    folder: Path
    course: Path = TINY

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def batch(self, texts: Mapping[str, str], roster: str = "") -> Home:
        hand_in(self.folder / "class", texts)
        options: list[object] = []
        if roster:
            (self.folder / "roster.csv").write_text(roster)
            options = ["--roster", self.folder / "roster.csv"]
        arguments = "batch", self.folder / "class", "--out", self.out, "--course", self.course
        assert self.cli(*arguments, "--seed", 5, *options).code in (0, 1)
        return self

    def back(self, *arguments: object) -> Said:
        return self.cli("return", *arguments, "--in", self.out, "--course", self.course)

    def page(self, student: str) -> str:
        return (self.out / "reports" / f"{student}.html").read_text()


@pytest.fixture
def home(cli: Cli, instant: Instant, tmp_path: Path) -> Home:
    return Home(cli, tmp_path)


def inside(path: Path) -> dict[str, str]:
    """The files in a zip, in their order."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def mails(path: Path) -> list[EmailMessage]:
    """The messages of an mbox."""

    def read(file: Any) -> EmailMessage:
        return BytesParser(EmailMessage, policy=policy.default).parse(file)

    return list(mailbox.mbox(path, read, create=False))  # type: ignore[arg-type]


def body(mail: EmailMessage) -> str:
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


# --- Moodle ---------------------------------------------------------------------------------------

IN_MOODLE = {f"{name}/scale.py": f"# {n + 5} points" for n, name in enumerate(MOODLE)}


def test_moodle_gets_the_folders_of_its_download_with_the_published_pages(home: Home) -> None:
    home.batch(IN_MOODLE)
    said = home.back("moodle", "--out", home.folder / "feedback.zip")
    assert (said.code, said.err) == (0, "")
    assert f"2 students: {home.folder / 'feedback.zip'}" in said.out
    assert list(inside(home.folder / "feedback.zip").items()) == [
        ("One A_3001_assignsubmission_file/feedback.html", home.page("3001")),
        ("Two B_3002_assignsubmission_file_/feedback.html", home.page("3002")),
    ]


def test_moodle_gets_files_with_a_prefix_where_the_download_has_no_folders(home: Home) -> None:
    home.batch({f"{name.rstrip('_')}_scale.py": "# 5 points" for name in MOODLE})
    home.back("moodle")
    assert list(inside(home.out / "feedback.zip")) == [
        "One A_3001_assignsubmission_file_feedback.html",
        "Two B_3002_assignsubmission_file_feedback.html",
    ]


def test_whoever_handed_in_a_text_alone_gets_feedback_by_number(home: Home) -> None:
    home.batch({**IN_MOODLE, "Tex T_3003_assignsubmission_onlinetext/onlinetext.html": "hello"})
    home.back("moodle")
    pages = inside(home.out / "feedback.zip")
    assert pages["Participant_3003_assignsubmission_file_/feedback.html"] == home.page("3003")
    assert "text entries are not graded" in home.page("3003")


def test_a_group_without_a_number_is_listed(home: Home) -> None:
    home.batch({**IN_MOODLE, "Default group_assignsubmission_file/scale.py": "# 5 points"})
    said = home.back("moodle")
    assert "without a file in the download that the feedback could go back under, 1: Default" in (
        said.out
    )
    assert len(inside(home.out / "feedback.zip")) == 2


def test_the_same_feedback_is_the_same_bytes_and_for_its_owner_alone(home: Home) -> None:
    home.batch(IN_MOODLE)
    written = []
    for name in ("one.zip", "two.zip"):
        home.back("moodle", "--out", home.folder / name)
        written.append((home.folder / name).read_bytes())
        assert stat.S_IMODE((home.folder / name).stat().st_mode) == 0o600
    assert written[0] == written[1]
    with zipfile.ZipFile(home.folder / "one.zip") as archive:
        for member in archive.infolist():
            assert member.date_time == (1980, 1, 1, 0, 0, 0)
            assert member.external_attr >> 16 == stat.S_IFREG | 0o600


WORKSHEET = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\r\n"
    "Participant 3001,One A,,Submitted,{},8.00,Yes,-,-,{}\r\n"
    "Participant 3002,Two B,,Submitted,{},8.00,Yes,-,-,{}\r\n"
    "Participant 3003,Tri C,,No submission,,8.00,Yes,-,-,\r\n"
)
FIX = "points. Fix Scale first. This does not hold yet: All of it.</p>"


def test_a_worksheet_gets_grades_and_comments(home: Home) -> None:
    home.batch(IN_MOODLE)
    sheet = home.folder / "sheet.csv"
    sheet.write_bytes(WORKSHEET.format("", "", "1.00", "<p>seen in class</p>").encode())
    said = home.back("moodle", "--worksheet", sheet)
    filled = WORKSHEET.format("5", f"<p>5 of 8 {FIX}", "6", "<p>seen in class</p>")
    written = home.out / "sheet-graded.csv"
    assert written.read_bytes() == filled.encode()
    assert f"2 marks in column Grade: {written}" in said.out
    assert "with a comment already, which was left as it was, 1: Two B" in said.out
    assert "left as they were, 1: Tri C" in said.out
    assert sheet.read_bytes() == WORKSHEET.format("", "", "1.00", "<p>seen in class</p>").encode()


def test_a_comment_of_an_earlier_time_is_replaced(home: Home) -> None:
    home.batch(IN_MOODLE)
    sheet = home.folder / "sheet.csv"
    earlier = "<p>3 of 8 points. Fix Scale first.</p>"
    sheet.write_bytes(WORKSHEET.format("", earlier, "", "").encode())
    home.back("moodle", "--worksheet", sheet, "-o", home.folder / "new.csv")
    assert (home.folder / "new.csv").read_bytes() == (
        WORKSHEET.format("5", f"<p>5 of 8 {FIX}", "6", f"<p>6 of 8 {FIX}").encode()
    )


def test_a_worksheet_in_another_language_has_its_comments_found(home: Home) -> None:
    home.batch(IN_MOODLE)
    page = (
        "ID,Vollständiger Name,Status,Bewertung,Bestwertung,Bewertung kann geändert werden,"
        "Zuletzt geändert (Bewertung){}\n"
        'Teilnehmer/in3001,One A,da,{},"8,00",Ja,-{}\nTeilnehmer/in3002,Two B,da,{},"8,00",Ja,-{}\n'
    )
    sheet = home.folder / "sheet.csv"
    sheet.write_text(page.format(",Feedback als Kommentar", "", ",", "", ","))
    home.back("moodle", "--worksheet", sheet)
    comments = [f",<p>{points} of 8 {FIX}" for points in (5, 6)]
    assert (home.out / "sheet-graded.csv").read_text() == (
        page.format(",Feedback als Kommentar", "5", comments[0], "6", comments[1])
    )
    sheet.write_text(page.format("", "", "", "", ""))
    said = home.back("moodle", "--worksheet", sheet, "--force")
    assert said.code == 2
    assert "no column seems to hold the feedback comments" in said.err
    assert "--comments" in said.err


def test_a_worksheet_that_lacks_a_student_is_refused_before_anything_is_written(
    home: Home,
) -> None:
    home.batch({**IN_MOODLE, "Four D_3004_assignsubmission_file/scale.py": "# 7 points"})
    sheet = home.folder / "sheet.csv"
    sheet.write_text(WORKSHEET.format("", "", "", ""))
    said = home.back("moodle", "--worksheet", sheet)
    assert said.code == 2
    assert "3004 (Four D): no row" in said.err
    assert not (home.out / "feedback.zip").exists()
    said = home.back("moodle", "--worksheet", sheet, "--skip-unmatched")
    assert said.code == 0
    assert "in no row of the gradebook, and left out, 1: 3004 (Four D): no row" in said.out
    assert len(inside(home.out / "feedback.zip")) == 3


# --- Canvas ---------------------------------------------------------------------------------------


def test_canvas_gets_the_names_of_its_download(home: Home) -> None:
    home.batch(dict.fromkeys(CANVAS, "# 5 points"))
    said = home.back("canvas", "--out", home.folder / "feedback.zip")
    assert (said.code, said.err) == (0, "")
    assert list(inside(home.folder / "feedback.zip").items()) == [
        ("onea_7001_8001_feedback.html", home.page("7001")),
        ("twob_LATE_7002_8002_feedback.html", home.page("7002")),
    ]


def test_canvas_gets_one_page_for_the_newest_file_of_the_attempt_that_counts(home: Home) -> None:
    home.batch(
        {
            "onea_7001_8001_scale.py": "# 3 points",
            "onea_7001_8009_scale-1.py": "# 5 points",
            "onea_7001_8004_linked_list.py": "x = 1",
            "anon_x1y2Z_8005_link.py": "# 5 points",
            "LATE_anon_A1b2C_8006_scale.py": "# 4 points",
            "trio_7003_text.html": "an entry",
        }
    )
    said = home.back("canvas")
    assert list(inside(home.out / "feedback.zip")) == [
        "LATE_anon_A1b2C_8006_feedback.html",
        "anon_x1y2Z_8005_feedback.html",
        "onea_7001_8009_feedback.html",
    ]
    assert "could go back under, 1: 7003" in said.out


# --- mails ----------------------------------------------------------------------------------------

ROSTER = (
    "id,name,email\ns001,Student 001,s001@school.example\ns002,Student 002,\n"
    "s003,Studentin 003 Ä,s003@school.example\n"
)
BY_MAIL = {f"s00{n}/scale.py": f"# {n + 4} points" for n in (1, 2, 3)}
TEAM = "--from", "Course team <team@school.example>"


def test_mails_say_the_points_and_bring_the_page(home: Home) -> None:
    home.batch(BY_MAIL, ROSTER)
    said = home.back("mail", *TEAM, "--out", home.folder / "mails.mbox")
    assert (said.code, said.err) == (0, "")
    assert f"2 mails: {home.folder / 'mails.mbox'}" in said.out
    assert "without an e-mail address, 1: s002" in said.out
    first, last = mails(home.folder / "mails.mbox")
    assert first["From"] == "Course team <team@school.example>"
    assert first["To"] == "Student 001 <s001@school.example>"
    assert last["To"].addresses[0].display_name == "Studentin 003 Ä"
    assert first["Subject"] == "A tiny course: your feedback"
    assert body(first) == (
        "Hello Student 001,\n\nhere is the feedback on A tiny course.\n\n"
        "5 of 8 points. Fix Scale first. This does not hold yet: All of it.\n\n"
        "Scale: 5 / 8, 1 of 1 checks fail\n\n"
        "The attached page is the whole report; open it in a browser.\n"
    )
    for student, mail in (("s001", first), ("s003", last)):
        (page,) = mail.iter_attachments()
        assert (page.get_content_type(), page.get_filename()) == ("text/html", f"{student}.html")
        assert page.get_content() == home.page(student)
        copy = home.folder / "mails-reports" / f"{student}.html"
        assert copy.read_text() == home.page(student)
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_an_mbox_is_the_same_bytes_each_time_and_as_the_standard_has_it(home: Home) -> None:
    home.batch(BY_MAIL, ROSTER)
    for name in ("one.mbox", "two.mbox"):
        home.back("mail", *TEAM, "--out", home.folder / name)
    data = (home.folder / "one.mbox").read_bytes()
    assert data == (home.folder / "two.mbox").read_bytes()
    ((at,),) = rows(home.out, "SELECT at FROM published WHERE student = 's001'")
    when = datetime.fromisoformat(at)
    start, _, rest = data.decode("ascii").partition("\nMessage-ID: ")
    assert start == (
        f"From team@school.example {time.asctime(when.timetuple())}\n"
        "From: Course team <team@school.example>\nTo: Student 001 <s001@school.example>\n"
        f"Subject: A tiny course: your feedback\nDate: {format_datetime(when)}"
    )
    assert max(map(len, rest.splitlines())) <= 78
    ids = [mail["Message-ID"] for mail in mails(home.folder / "one.mbox")]
    assert len(set(ids)) == 2
    assert all(one.endswith("@school.example>") for one in ids)


def test_the_table_of_mails_opens_in_excel_and_names_the_pages(home: Home) -> None:
    home.batch(BY_MAIL, ROSTER)
    home.back("mail", *TEAM)
    data = (home.out / "mails.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfemail,name,id,subject,text,attachment\r\n")
    first, last = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert first["attachment"] == "mails-reports/s001.html"
    assert (home.out / first["attachment"]).read_text() == home.page("s001")
    assert (last["email"], last["name"], last["id"]) == (
        *("s003@school.example", "Studentin 003 Ä", "s003"),
    )
    assert first["text"] == body(mails(home.out / "mails.mbox")[0])


@pytest.mark.parametrize(
    "sender", ["", "team", "a@b\r\nBcc: c@d", "a@b.example, c@d.example", "<a@b.example>x y"]
)
def test_a_sender_that_is_no_address_is_refused(sender: str, home: Home) -> None:
    home.batch(BY_MAIL, ROSTER)
    said = home.back("mail", "--from", sender)
    assert said.code == 2
    assert "team@school.example" in said.err
    assert not (home.out / "mails.mbox").exists()


# --- strangers' names -----------------------------------------------------------------------------


def test_strange_names_stay_harmless_in_mails(home: Home, tiny_copy: Path) -> None:
    exercise = tiny_copy / "reference" / "scale" / "exercise.toml"
    exercise.write_text(re.sub('title = ".*"', 'title = "From 1"', exercise.read_text()))
    roster = (
        "id,name,email\n"
        's001,"Eve\r\nBcc: all@school.example",s001@school.example\n'
        's002,"=HYPERLINK(""http://x.example"")",s002@school.example\n'
        's003,"""Eve"" <../..>, ; x",s003@school.example\n'
        's004,Name 4,"s004@school.example, all@school.example"\n'
        's005,Name 5,"s005@school.example\r\nBcc: all@school.example"\n'
        "s006,Name 6,jörg@school.example\n"
    )
    texts = {f"s00{n}/scale.py": "# 5 points" for n in range(1, 7)}
    home = replace(home, course=tiny_copy).batch(texts, roster)
    said = home.back("mail", *TEAM)
    assert "with an e-mail address that cannot be used, 3: s004, s005, s006" in said.out
    found = mails(home.out / "mails.mbox")
    headers = {"From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"}
    assert [set(mail.keys()) for mail in found] == [headers] * 3
    assert [[one.addr_spec for one in mail["To"].addresses] for mail in found] == (
        [[f"s00{n}@school.example"] for n in (1, 2, 3)]
    )
    assert found[2]["To"].addresses[0].display_name == '"Eve" <../..>, ; x'
    assert "\n>From 1: 5 / 8" in body(found[0])
    with (home.out / "mails.csv").open(encoding="utf-8-sig", newline="") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    assert names[1].startswith("'=HYPERLINK")
    assert sorted(path.name for path in (home.out / "mails-reports").iterdir()) == (
        ["s001.html", "s002.html", "s003.html"]
    )


def test_strange_names_stay_harmless_in_a_zip(home: Home) -> None:
    strange = {
        "=1+1\n..\\..\\x: y_3003_assignsubmission_file/scale.py": "# 5 points",
        "x_3004_assignsubmission_file_3001_assignsubmission_file/scale.py": "# 5 points",
    }
    home.batch({**IN_MOODLE, **strange})
    raw = os.fsencode(home.folder / "class") + b"/J\xf6rg_3005_assignsubmission_file"
    os.mkdir(raw)
    Path(os.fsdecode(raw), "scale.py").write_text("# 5 points")
    home.batch({})
    home.back("moodle")
    pages = inside(home.out / "feedback.zip")
    assert pages["=1+1-..-..-x- y_3003_assignsubmission_file/feedback.html"] == home.page("3003")
    assert pages["J-rg_3005_assignsubmission_file/feedback.html"] == home.page("3005")
    assert all(name.count("/") == 1 and not name.startswith(("/", "..")) for name in pages)


def test_a_comment_holds_no_formula_and_no_markup(home: Home, tiny_copy: Path) -> None:
    exercise = tiny_copy / "reference" / "scale" / "exercise.toml"
    exercise.write_text(re.sub('title = ".*"', 'title = "a<b>,=-1;;=2 & c"', exercise.read_text()))
    home = replace(home, course=tiny_copy).batch(IN_MOODLE)
    sheet = home.folder / "sheet.csv"
    sheet.write_bytes(WORKSHEET.format("", "", "", "").encode())
    home.back("moodle", "--worksheet", sheet)
    with (home.out / "sheet-graded.csv").open(newline="") as file:
        said = next(csv.DictReader(file))["Feedback comments"]
    assert "Fix a&lt;b&gt;,&#61;&#45;1;;&#61;2 &amp; c first" in said
    home.back("moodle", "--worksheet", home.out / "sheet-graded.csv", "--force")
    again = home.out / "sheet-graded-graded.csv"
    assert again.read_bytes() == (home.out / "sheet-graded.csv").read_bytes()


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
    assert f"not graded and published yet, {len(waiting)}: {', '.join(waiting)}\n" in said.out
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
    assert "under which names the class lay in Moodle's download" in said.err
    assert "grader batch SUBMISSIONS" in said.err
    home.batch({})
    assert home.back("moodle").code == 0


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("mail",), "who do the mails come from"),
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
