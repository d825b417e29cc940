"""A gradebook of Canvas gets every mark in its student's row, or is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from gradebook_files import both, mark, refused

from grader.classroom.gradebooks import Filled, StudentMark, fill_canvas
from grader.classroom.gradebooks.table import BOM

CANVAS = (
    'Student,ID,SIS User ID,SIS Login ID,Section,"Homework, part 1 (101)",Current Score\r\n'
    ",,,,,Manual Posting,\r\n"
    "    Points Possible,,,,,10.00,(read only)\r\n"
    '"001, Student",7001,n1,s001@school.example,"A\r\nB",[[|7.5]],12\r\n'
    '"002, Student",7002,n2,s002@school.example,A,"[[3.00|10]]",99\r\n'
    '"003, ""Student""",7003,n3,s003@school.example,A,[[|0]],""\r\n'
    '"004, Student",7004,n4,s004@school.example,A,5.00,\r\n'
    "\r\n"
    '"Student, Test",7999,,t999,A,,'
)
MARKS = [
    mark("7001", 7.5),
    mark("who", 10, login="s002@school.example"),
    mark("x", 0, number="n3"),
]


@pytest.mark.parametrize("start", [b"", BOM])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_canvas_gets_the_marks_and_keeps_every_other_byte(start: bytes, end: str) -> None:
    before, after = both(CANVAS.replace("\r\n", end), start)
    filled = fill_canvas(before, MARKS)
    assert filled.data == after
    assert filled == Filled(after, "Homework, part 1 (101)", 3, ("004, Student",), ())


def test_an_id_may_be_the_number_of_a_gradebook_if_it_is_no_key_there() -> None:
    before, after = both(
        "Student,ID,SIS User ID,Section,Homework (101)\n"
        '"Name, Same",7001,n1,A,[[|4]]\n"Name, Same",7002,7001,A,\n"Other",7003,n3,A,[[|5]]\n'
    )
    marks = [mark("7001", 4), mark("n3", 5)]  # a key is stronger than another's number
    assert fill_canvas(before, marks).data == after
    twins = [mark("n1", 4, name="Same Name"), mark("n3", 5)]
    assert fill_canvas(before, twins).data == after


def test_canvas_with_semicolons_has_commas_in_its_numbers() -> None:
    before, after = both(
        "Student;ID;SIS Login ID;Section;Homework (101)\n"
        "    Points Possible;;;;10,00\n"
        "s001;7001;s001;A;[[|7,5]]\n"
    )
    assert fill_canvas(before, [mark("s001", 7.5)]).data == after


def test_a_decimal_comma_between_commas_is_quoted() -> None:
    before, after = both(
        'Student,ID,Section,Homework (101)\nPoints Possible,,,"10,00"\ns001,7001,A,[[|"7,5"]]\n'
    )
    assert fill_canvas(before, [mark("7001", 7.5)]).data == after


def test_canvas_takes_extra_credit() -> None:
    assert b'A\r\nB",12,' in fill_canvas(both(CANVAS)[0], [mark("7001", 12)]).data


def test_excused_students_stay_excused_and_are_reported() -> None:
    before, after = both(
        "Student,ID,Section,Homework (101)\n"
        "s001,7001,A,EX\ns002,7002,A,ex\ns003,7003,A,N/A\ns004,7004,A,[[|4]]\ns005,7005,A,EX\n"
    )
    filled = fill_canvas(before, [mark(f"700{n}", n) for n in (1, 2, 3, 4)])
    assert filled.data == after
    assert (filled.written, filled.excused, filled.without) == (
        1,
        ("s001", "s002", "s003"),
        ("s005",),
    )


def test_the_test_student_needs_no_mark_but_may_have_one() -> None:
    filled = fill_canvas(both(CANVAS)[0], [mark("7999", 3)])
    assert filled.data.endswith(b'"Student, Test",7999,,t999,A,3,')


# --- whose row it is ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["001, Student", "Student 001", "student  001", "STUDENT 001"])
def test_a_full_name_decides_where_no_id_is_known(name: str) -> None:
    before, after = both(CANVAS)
    assert fill_canvas(before, [mark("x", 7.5, name=name), *MARKS[1:]]).data == after


def test_a_login_may_be_an_email_or_what_the_submission_is_called() -> None:
    before, after = both(CANVAS)
    mailed = mark("x", 7.5, email="S001@school.example")
    assert fill_canvas(before, [mailed, *MARKS[1:]]).data == after
    assert fill_canvas(before, [mark("s001@school.example", 7.5), *MARKS[1:]]).data == after
    assert "no row" in refused(fill_canvas, before, [mark("n9", 7.5)])


def test_first_and_last_names_in_two_columns_are_joined() -> None:
    before, after = both(
        "LastName,FirstName,ID,SIS Login ID,Section,Homework (101)\n001,Student,7001,l1,A,[[|4]]\n"
    )
    assert fill_canvas(before, [mark("x", 4, name="Student 001")]).data == after


@pytest.mark.parametrize("name", ["=1+1", "+1", "@SUM(A1)", "-001, Student", "'001"])
def test_names_that_look_like_formulas_are_unchanged(name: str) -> None:
    # Canvas itself writes a name that begins with = as a text within a formula.
    shown_as = f'"=""{name}"""' if name.startswith("=") else f'"{name}"'
    before, after = both(f"Student,ID,Section,Homework (101)\n{shown_as},7001,A,[[|4]]\n")
    assert fill_canvas(before, [mark("x", 4, name=name)]).data == after


def test_every_student_without_a_row_is_reported_and_nothing_is_written() -> None:
    marks = [MARKS[0], *(mark(f"s{n:03}", 1) for n in range(100, 125))]
    said = refused(fill_canvas, both(CANVAS)[0], marks)
    assert "25 students have a mark, but no row of their own" in said
    assert "nothing was written" in said
    assert "\n  s100: no row\n" in said
    assert "\n  s119: no row\n  and 5 more\n" in said
    assert "s120" not in said
    assert "7001" not in said
    assert "roster" in said


def test_ids_of_different_rows_match_no_row() -> None:
    said = refused(fill_canvas, both(CANVAS)[0], [mark("7001", 1, number="n2")])
    assert "1 student has" in said
    assert "7001: lines 4, 6 all match" in said


def test_a_name_of_two_students_matches_no_row() -> None:
    page = b"Student,ID,Section,Homework (1)\ns001,7001,A,\ns001,7002,A,\n"
    assert "x (s001): lines 2, 3 all match" in refused(
        fill_canvas, page, [mark("x", 1, name="s001")]
    )
    assert fill_canvas(page, [mark("7002", 1, name="s001")]).without == ("s001",)


def test_two_marks_for_one_row_are_refused() -> None:
    marks = [mark("7001", 1), mark("again", 2, number="n1")]
    assert "again: line 4 also matches 7001" in refused(fill_canvas, both(CANVAS)[0], marks)


def test_of_two_students_in_one_row_neither_gets_in_it() -> None:
    page = b"Student,ID,SIS User ID,Section,Homework (1)\ns001,7001,n1,A,\ns002,7002,n2,A,\n"
    marks = [mark("7001", 1), mark("again", 2, number="n1"), mark("7002", 3)]
    filled = fill_canvas(page, marks, skip_unmatched=True)
    assert filled.data == page.replace(b"n2,A,", b"n2,A,3")
    assert filled.unmatched == (
        "7001: line 2 also matches again",
        "again: line 2 also matches 7001",
    )


def test_a_row_that_ends_early_is_refused() -> None:
    page = b"Student,ID,Section,Homework (1)\ns001,7001,A\n"
    assert "line 2 of the gradebook ends before" in refused(fill_canvas, page, [mark("7001", 1)])


# --- which column is filled in --------------------------------------------------------------------

MANY = (
    'Student,ID,Section,Notes,"One (1)","Two (2)","Two and more (3)",Current Score (2030),'
    "Assignments Final Score (4)\n"
    "Points Possible,,,,5,10,20,(read only),(read only)\n"
    "s001,7001,A,,{},{},{},1,1\n"
)


@pytest.mark.parametrize(
    ("wanted", "place"),
    [("Two (2)", 1), ("2", 1), ("Two", 1), ("and more", 2), ("ONE", 0), ("3", 2)],
)
def test_the_assignment_is_chosen_by_title_number_or_a_part(wanted: str, place: int) -> None:
    def page(mark: str) -> bytes:
        return MANY.format(*(mark if n == place else "" for n in range(3))).encode()

    most = (5, 10, 20)[place]
    filled = fill_canvas(page(""), [mark("7001", 4, most)], column=wanted)
    assert filled.data == page("4")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (None, r"3 assignments to choose from: 'One \(1\)', 'Two \(2\)', 'Two and more \(3\)'"),
        ("o", r"4 columns match 'o': 'Notes', 'One \(1\)', 'Two \(2\)', 'Two and more \(3\)'"),
        ("Three", r"no column to fill in matches 'Three': 'Notes', 'One \(1\)'"),
        ("Current Score (2030)", "no column"),
        ("Section", "no column"),
        ("", "no column"),
    ],
)
def test_the_user_must_choose_one_of_several_assignments(wanted: Any, message: str) -> None:
    said = refused(fill_canvas, MANY.encode(), [mark("7001", 4)], column=wanted)
    assert re.search(message, said)
    assert "--column" in said


@pytest.mark.parametrize("name", ["Final Score (4)", "Group 1 Current Points (4)"])
@pytest.mark.parametrize("worth", ["", "Points Possible,,,5,(read only)\n"])
def test_a_column_that_canvas_computes_is_not_an_assignment(name: str, worth: str) -> None:
    page = f"Student,ID,Section,One (1),{name}\n{worth}s001,7001,A,[[|4]],1\n"
    before, after = both(page)
    assert fill_canvas(before, [mark("7001", 4, 5)]).data == after
    assert "no column" in refused(fill_canvas, before, [mark("7001", 4, 5)], column=name)


def test_a_column_that_canvas_does_not_read_is_not_filled_in() -> None:
    page = b"Student,ID,Section,Number,One (1)\nPoints Possible,,,(read only),5\ns001,7001,A,,\n"
    said = refused(fill_canvas, page, [mark("7001", 4, 5)], column="Number")
    assert "no column to fill in matches 'Number': 'One (1)'" in said


def test_a_gradebook_without_assignments_is_refused() -> None:
    said = refused(fill_canvas, b"Student,ID,Section\ns001,7001,A\n", [])
    assert "no assignments to choose from: (none)" in said


def test_another_file_is_refused_as_a_gradebook() -> None:
    assert "not a gradebook of Canvas" in refused(fill_canvas, b"name,points\ns001,3\n", [])
    empty = b"Student,ID,Section,Homework (1)\nPoints Possible,,,10\n"
    assert "has no students" in refused(fill_canvas, empty, [])


# --- how many points it holds ---------------------------------------------------------------------


@pytest.mark.parametrize("most", [20, 10.5])
def test_other_points_than_the_gradebooks_are_refused_unless_scaled(most: float) -> None:
    before, after = both(CANVAS)
    marks = [StudentMark(one.student, one.person, one.points * most / 10, most) for one in MARKS]
    said = refused(fill_canvas, before, marks)
    assert f"out of 10 points, the marks are out of {most:g}" in said
    assert "--scale" in said
    assert fill_canvas(before, marks, scale=True).data == after


def test_scaling_needs_points_on_both_sides() -> None:
    page = b"Student,ID,Section,Homework (1)\n%bs001,7001,A,\n"
    without, zero = page % b"", page % b"Points Possible,,,0\n"
    for data, most in ((without, 10), (zero, 10), (both(CANVAS)[0], 0)):
        assert "the marks cannot be scaled" in refused(
            fill_canvas, data, [mark("7001", 0, most)], scale=True
        )
    assert b"7001,A,3\n" in fill_canvas(without, [mark("7001", 3)]).data
    digits = page % b"Points Possible,,,%b\n" % (b"9" * 400)
    assert "are not a number in 'Homework (1)'" in refused(fill_canvas, digits, [], scale=True)
    odd = page % b"Points Possible,,,ten\n"
    assert "are not a number in 'Homework (1)': 'ten'" in refused(fill_canvas, odd, [])


@pytest.mark.parametrize("points", [float("nan"), float("inf")])
def test_a_mark_that_is_not_a_number_is_refused(points: float) -> None:
    assert "7001 is not a number" in refused(fill_canvas, both(CANVAS)[0], [mark("7001", points)])
