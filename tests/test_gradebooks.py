"""`grader export` fills in a downloaded gradebook, by exercise if asked, and writes a new file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from classroom import Instant, hand_in
from commandline import Cli
from gradebook_files import both, refused

from grader.classroom.gradebooks import (
    ExercisePoints,
    Filled,
    StudentMark,
    fill_canvas,
    fill_moodle,
)
from grader.classroom.gradebooks.table import BOM
from grader.report import Person

# --- a column for each exercise -------------------------------------------------------------------

PARTS = [("scale", "Scale", 5, 8), ("shift", "Shift, more", 1.5, 2)]


def in_parts(student: str, *points: float) -> StudentMark:
    parts = zip(PARTS, points)
    exercises = tuple(
        ExercisePoints(name, title, own, most) for (name, title, _, most), own in parts
    )
    return StudentMark(student, Person(), sum(points), 10, exercises)


def test_canvas_gets_new_assignments_after_all_other_columns() -> None:
    before, after = both(
        'Student,ID,Section,Final Score[[|,Scale,"Shift, more"]]\r\n'
        ",,,Manual Posting[[|,,]]\r\n"
        "Points Possible,,,(read only)[[|,8,2]]\r\n"
        "s001,7001,A,1[[|,5,1.5]]\r\n"
        "s002,7002,A[[|,,,]]\r\n"
        "\r\n"
        "s003,7003,A,[[|,8,0]]"
    )
    marks = [in_parts("7001", 5, 1.5), in_parts("7003", 8, 0)]
    filled = fill_canvas(before, marks, per_exercise=True)
    assert filled.data == after
    assert filled == Filled(after, "Scale, Shift, more", 2, ("s002",))
    assert fill_canvas(after, marks, per_exercise=True).data == after


def test_canvas_gets_the_points_in_assignments_that_are_called_after_the_exercises() -> None:
    before, after = both(
        "Student,ID,Section,SHIFT (12),Scale (11),All (10)\n"
        'Points Possible,,,"2,00",8,10\n'
        's001,7001,A,[[|"1,5"]],[[|5]],[[|{all}]]\n'
        "s002,7002,A,EX,[[|4]],[[|{all2}]]\n"
    )
    marks = [in_parts("7001", 5, 1.5), in_parts("7002", 4, 0)]
    filled = fill_canvas(before, marks, per_exercise=True)
    assert filled.data == after.replace(b"{all}", b"").replace(b"{all2}", b"")
    assert filled.excused == ("s002",)
    with_all = fill_canvas(before, marks, per_exercise=True, column="All")
    assert with_all.data == after.replace(b"{all}", b"6.5").replace(b"{all2}", b"4")
    other = before.replace(b",8,10", b",4,10")
    said = refused(fill_canvas, other, marks, per_exercise=True)
    assert "the column of scale is out of 4 points, the marks are out of 8" in said
    scaled = fill_canvas(other, marks, per_exercise=True, scale=True)
    assert b'"1,5",2.5,' in scaled.data


def test_two_assignments_that_are_called_after_one_exercise_are_refused() -> None:
    page = b"Student,ID,Section,Scale (1),scale (2)\ns001,7001,A,,\n"
    said = refused(fill_canvas, page, [in_parts("7001", 5, 1)], per_exercise=True)
    assert "2 columns are called after scale: 'Scale (1)', 'scale (2)'" in said


def test_moodle_gets_a_column_for_each_exercise_at_the_end() -> None:
    before, after = both(
        'ID,Name,Status,Note,Höchste,Änderbar,Kommentar[[|,Scale,"Shift, more"]]\n'
        'P1,s001,da,[[|"6,5"]],"10,00",Ja,[[|,5,"1,5"]]\n'
        'P2,s002,da,,"10,00",Ja,[[|,,]]\n'
    )
    marks = [in_parts("1", 5, 1.5)]
    filled = fill_moodle(before, marks, per_exercise=True)
    assert filled.data == after
    assert fill_moodle(after, marks, per_exercise=True).data == after


def test_other_columns_called_after_an_exercise_do_not_matter_without_exercises() -> None:
    before, after = both(
        'ID,Name,Status,Note,Höchste,Änderbar,Scale,scale\nP1,s001,da,[[|"6,5"]],"10,00",Ja,,\n'
    )
    marks = [in_parts("1", 5, 1.5)]
    assert fill_moodle(before, marks).data == after
    assert "called after scale" in refused(fill_moodle, before, marks, per_exercise=True)


# --- the command ----------------------------------------------------------------------------------

BOOK = (
    "Student,ID,Section,Homework (1){}\nPoints Possible,,,10{}\n"
    "s001,s001,A,{}{}\ns002,s002,A,{}{}\n"
)


@pytest.fixture
def graded(cli: Cli, instant: Instant, pair: Path, tmp_path: Path) -> Path:
    """A class of three students and two exercises, graded in `out`; its gradebook has two."""
    instant.points = {"scale": 5}
    texts = {f"s00{n}/{name}.py": f"# {n}" for n in (1, 2, 3) for name in ("scale", "shift")}
    texts["s001/shift.py"] = "# 1 points"
    hand_in(tmp_path / "class", texts)
    cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", pair)
    (tmp_path / "book.csv").write_text(BOOK.format("", "", "", "", "", ""))
    return tmp_path


def test_students_without_a_row_can_be_left_out(cli: Cli, graded: Path, pair: Path) -> None:
    options = "--in", graded / "out", "--course", pair
    said = cli("export", "canvas", graded / "book.csv", *options)
    assert said.code == 2
    assert "s003: no row" in said.err
    assert "--skip-unmatched" in said.err
    written = graded / "out" / "book-graded.csv"
    assert not written.exists()
    said = cli("export", "canvas", graded / "book.csv", *options, "--skip-unmatched")
    assert said.code == 0
    assert f"2 marks in column Homework (1): {written}" in said.out
    assert "in no row of the gradebook, and left out, 1: s003: no row" in said.out
    assert written.read_text() == BOOK.format("", "", "6", "", "7", "")


def test_the_command_writes_a_column_for_each_exercise(cli: Cli, graded: Path, pair: Path) -> None:
    options = "--in", graded / "out", "--course", pair, "--skip-unmatched", "--per-exercise"
    said = cli("export", "canvas", graded / "book.csv", *options)
    assert "2 marks in columns Scale, Shift:" in said.out
    assert (graded / "out" / "book-graded.csv").read_text() == (
        BOOK.format(",Scale,Shift", ",8,2", "", ",5,1", "", ",5,2")
    )
    cli("export", "canvas", graded / "book.csv", *options, "--column", "Homework")
    assert (graded / "out" / "book-graded.csv").read_text() == (
        BOOK.format(",Scale,Shift", ",8,2", "6", ",5,1", "7", ",5,2")
    )


def test_the_gradebook_that_was_read_is_never_overwritten(
    cli: Cli, graded: Path, pair: Path
) -> None:
    book, options = graded / "book.csv", ("--in", graded / "out", "--course", pair)
    before = book.read_bytes()
    (graded / "link.csv").symlink_to(book)
    (graded / "hard.csv").hardlink_to(book)
    for output in ("book.csv", "link.csv", "hard.csv", "out/../book.csv", "out/ledger.sqlite"):
        place = graded / output
        said = cli("export", "canvas", book, *options, "--skip-unmatched", "-o", place)
        assert said.code == 2, output
        assert "give another file to write" in said.err
    assert book.read_bytes() == before


def test_the_marks_open_in_excel_with_a_column_for_each_exercise(
    cli: Cli, graded: Path, pair: Path
) -> None:
    said = cli("export", "csv", "--per-exercise", "--in", graded / "out", "--course", pair)
    assert said.code == 0
    data = (graded / "out" / "marks.csv").read_bytes()
    assert data == (graded / "out" / "grades.csv").read_bytes()
    assert data.startswith(BOM)
    first, *_ = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert (first["submission"], first["scale"], first["shift"]) == ("s001", "5", "1")
    said = cli("export", "junit", "--per-exercise", "--in", graded / "out", "--course", pair)
    assert said.code == 2
    assert "`junit` has no columns to choose" in said.err


# --- whose row ------------------------------------------------------------------------------------

TWO = [StudentMark("7001", Person("Same Name"), 8, 8), StudentMark("x", Person("Same Name"), 3, 8)]


def test_an_id_in_canvas_beats_a_namesake_without_one() -> None:
    before, after = both(
        'Student,ID,A (1)\nPoints Possible,,8\n"Name, Same",7001,[[|8]]\n"Else, One",7002,\n'
    )
    filled = fill_canvas(before, TWO, skip_unmatched=True)
    assert (filled.data, filled.written) == (after, 1)
    assert filled.unmatched == ("x (Same Name): line 3 also matches 7001 (Same Name)",)
    says = refused(fill_canvas, before, TWO)
    assert "1 student has a mark, but no row of their own" in says
    assert "x (Same Name): line 3 also matches 7001 (Same Name)" in says


def test_an_email_in_moodle_beats_a_namesake_without_one() -> None:
    before, after = both(
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed\n"
        "Participant 1,Same Name,s001@school.example,Submitted,[[|8]],8,Yes\n"
        "Participant 2,Else,s002@school.example,Submitted,,8,Yes\n"
    )
    known = StudentMark("s", Person("Same Name", "s001@school.example"), 8, 8)
    filled = fill_moodle(before, [TWO[1], known], skip_unmatched=True)
    assert (filled.data, filled.written) == (after, 1)
    assert filled.unmatched == ("x (Same Name): line 2 also matches s (Same Name)",)


def test_a_number_that_lost_its_zeros_is_found_in_a_gradebook_and_said() -> None:
    before, after = both(
        "Student,ID,SIS User ID,A (1)\nPoints Possible,,,8\nOne,71,0012345,[[|8]]\nTwo,72,345,\n"
    )
    filled = fill_canvas(before, [StudentMark("12345", Person("One A"), 8, 8)])
    assert (filled.data, filled.guessed) == (after, ("12345 (One A): line 3",))
