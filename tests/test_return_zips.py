"""Moodle and Canvas get feedback under the names that lay in their downloads."""

from __future__ import annotations

import csv
import json
import os
import re
import stat
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from classroom import TINY, Instant, hand_in, rows
from commandline import Cli
from feedback import BY_MAIL, IN_MOODLE, MOODLE, ROSTER, TEAM, WORKSHEET, Home, inside
from handed_in import zipped

CANVAS = "onea_7001_8001_scale.py", "twob_LATE_7002_8002_scale.py"


# --- where attempts lay ---------------------------------------------------------------------------


def names(out: Path) -> dict[tuple[str, int], tuple[str, list[str]]]:
    """Where the ledger says that each attempt lay in the download."""
    found = rows(out, "SELECT student, number, layout, names FROM origins")
    return {(student, number): (layout, json.loads(at)) for student, number, layout, at in found}


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


# --- Moodle ---------------------------------------------------------------------------------------


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
    assert (
        "without a file in the download, under whose name the feedback could go back, 1: Default"
        in (said.out)
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


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\u200f", "\U000e0041"])
def test_no_name_or_text_that_goes_out_turns_what_is_read(sign: str, home: Home) -> None:
    names = [f"One {sign}A_3001_assignsubmission_file", f"Two{sign}_3002_assignsubmission_file_"]
    home.batch({f"{name}/scale.py": "# 5 points" for name in names})
    home.back("moodle")
    pages = inside(home.out / "feedback.zip")
    assert len(pages) == 2
    assert sign not in "".join([*pages, *pages.values()])
    written = [path for path in home.out.rglob("*") if path.suffix in (".html", ".csv", ".md")]
    assert not [path for path in written if sign in path.name + path.read_text()]


def test_no_name_of_a_roster_turns_what_is_read(home: Home) -> None:
    home.batch(BY_MAIL, ROSTER.replace("Student 001", "Stu\u202edent 001"))
    home.back("mail", *TEAM)
    written = [path for path in home.out.rglob("*") if path.suffix in (".html", ".csv", ".mbox")]
    assert len(written) > 3
    assert not [path for path in written if "\u202e" in path.read_text()]
    assert "=E2=80=AE" not in (home.out / "mails.mbox").read_text()
    assert "Student 001" in (home.out / "mails.csv").read_text()


# --- Moodle's worksheet ---------------------------------------------------------------------------

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
    assert "could go back, 1: 7003" in said.out
