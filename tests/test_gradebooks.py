"""A downloaded gradebook is filled in with marks, and no other byte changes."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from classroom import Instant, hand_in
from commandline import Cli
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.classroom.gradebooks import (
    ExercisePoints,
    Filled,
    StudentMark,
    fill_canvas,
    fill_moodle,
)
from grader.classroom.gradebooks.fill import format_number, parse_number
from grader.classroom.gradebooks.table import BOM, DELIMITERS, Field, read_table
from grader.errors import RequestError
from grader.report import Person

FILLED = re.compile(r"\[\[(.*?)\|(.*?)\]\]", re.DOTALL)


def both(page: str, start: bytes = b"") -> tuple[bytes, bytes]:
    """Return a file before and after; `[[old|new]]` marks the cells that change."""
    return start + FILLED.sub(r"\1", page).encode(), start + FILLED.sub(r"\2", page).encode()


def mark(student: str, points: float, most: float = 10, **person: str) -> StudentMark:
    return StudentMark(student, Person(**person), points, most)


def refused(fill: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(RequestError) as error:
        fill(*arguments, **options)
    return f"{error.value.message}\n{error.value.remedy}"


# --- CSV as positions -----------------------------------------------------------------------------

TEXT = st.one_of(
    st.text(st.sampled_from(',;\t"\r\n =a'), max_size=6),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
)
ROWS = st.integers(2, 4).flatmap(
    lambda width: st.lists(
        st.lists(TEXT, min_size=width, max_size=width), min_size=1, max_size=5
    ).map(lambda rows: [[f"h{n}" for n in range(width)], *rows])
)
SHAPES = st.tuples(
    st.sampled_from(DELIMITERS), st.sampled_from(["\r\n", "\n", "\r"]), st.booleans(), st.booleans()
)
PROPERTY = settings(derandomize=True, max_examples=200, deadline=None, database=None)


def written(rows: list[list[str]], delimiter: bytes, end: str, quoted: bool, bom: bool) -> bytes:
    stream = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    writer = csv.writer(
        stream, delimiter=delimiter.decode(), lineterminator="\r\n", quoting=quoting
    )
    for row in rows:
        writer.writerow(row)
    text = stream.getvalue()
    if end != "\r\n" and not any(mark in cell for row in rows for cell in row for mark in "\r\n"):
        text = text.replace("\r\n", end)
    return (BOM if bom else b"") + text.encode()


def split(data: bytes, delimiter: bytes) -> list[list[str]]:
    """Return what the csv module reads."""
    stream = io.StringIO(data.decode("utf-8-sig"), newline="")
    return [row for row in csv.reader(stream, delimiter=delimiter.decode()) if row]


@pytest.mark.slow
@PROPERTY
@given(ROWS, SHAPES)
def test_fields_are_where_the_csv_module_finds_them(rows: Any, shape: Any) -> None:
    data = written(rows, *shape)
    table = read_table(data)
    assert table.delimiter == shape[0]
    found = [[table.text(field) for field in record] for record in (table.header, *table.records)]
    assert found == split(data, shape[0]) == rows


@pytest.mark.slow
@PROPERTY
@given(ROWS, SHAPES, st.data())
def test_filling_in_changes_the_cell_and_no_other_byte(rows: Any, shape: Any, data: Any) -> None:
    before = written(rows, *shape)
    table = read_table(before)
    record = data.draw(st.integers(0, len(table.records) - 1))
    column = data.draw(st.integers(0, len(rows[0]) - 1))
    text, field = data.draw(TEXT), table.records[record][column]
    after = table.filled({field: text})
    rows[record + 1][column] = text
    assert split(after, shape[0]) == rows
    assert after.startswith(before[: field.start])
    assert after.endswith(before[field.end :])
    if before[field.start : field.start + 1] == b'"':
        assert after[field.start : field.start + 1] == b'"'


def test_a_file_with_nothing_filled_in_is_unchanged() -> None:
    data = BOM + b'a;"b""c\r\nd"\r\n\r\n;\n"";x'
    table = read_table(data)
    assert table.filled({}) == data
    assert [[table.text(f) for f in r] for r in table.records] == [["", ""], ["", "x"]]
    assert table.columns == ("a", 'b"c\r\nd')
    assert table.line(table.records[1][0]) == 5


@pytest.mark.parametrize(
    ("text", "cell"),
    [("x", "x"), ("", ""), ("7,5", '"7,5"'), ('a"b', '"a""b"'), ("a\nb", '"a\nb"'), ("7;5", "7;5")],
)
def test_a_text_is_quoted_where_it_must_be(text: str, cell: str) -> None:
    table = read_table(b'a,b\nold,"old"\n')
    first, second = table.records[0]
    assert table.filled({first: text}).decode() == f'a,b\n{cell},"old"\n'
    bare = cell.removeprefix('"').removesuffix('"')
    assert table.filled({second: text}).decode() == f'a,b\nold,"{bare}"\n'


def test_the_delimiter_is_found_whatever_the_titles_hold() -> None:
    assert read_table(b'Student,ID,"a; b; c; d; e (1)"\n').delimiter == b","
    assert read_table(b"Student;ID;a, b (1)\n").delimiter == b";"
    assert read_table(b'Student,ID,"""a; b; ""c; d;"" e (1)"\n').delimiter == b","
    assert read_table(b'"Student"\t"ID"\t"a, b"\n').delimiter == b"\t"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("Student,ID\n".encode("utf-16"), "UTF-16"),
        ("Student,ID\n".encode("utf-16-le"), "UTF-16"),
        ("Student,ID\ns001,1\nJosé,2\n".encode("latin-1"), r"not UTF-8 \(line 3\)"),
        (b'Student,ID\n"s001,1\n', "line 2 has a quote"),
        (b'Student,ID\ns001,"1"2\n', "line 2 has a quote"),
        (b"", "no columns"),
        (b"Student\ns001\n", "no columns"),
    ],
)
def test_a_file_that_is_not_csv_in_utf_8_is_refused(data: bytes, message: str) -> None:
    said = refused(read_table, data)
    assert re.search(message, said)
    if "UTF" in message:
        assert "export it again as CSV in UTF-8" in said


def test_a_field_is_a_position() -> None:
    assert read_table(b'a,"b"\n').header == (Field(0, 1), Field(2, 5))


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "text"),
    [
        (7, "7"), (7.0, "7"), (7.5, "7.5"), (2.675, "2.68"), (1 / 3, "0.33"), (10, "10"), (0, "0"),
        (-0.0, "0"), (100.0, "100"), (-1.5, "-1.5"), (1e-9, "0"), (12345678.25, "12345678.25"),
        (-1e-9, "0"),
    ],
)  # fmt: skip
def test_a_mark_has_two_decimals_at_most_and_no_zeros_at_its_end(points: float, text: str) -> None:
    data, after = both(f"Student,ID,Section,Homework (5)\ns001,1,A,[[|{text}]]\n")
    assert fill_canvas(data, [mark("1", points)]).data == after


def test_numbers_are_read_with_points_and_commas() -> None:
    assert parse_number("10.50") == parse_number("10,5") == Decimal("10.5")
    assert [parse_number(text) for text in ("", "-1", "EX", "1.000,00", "5 %")] == [None] * 5
    assert format_number(Decimal("100")) == "100"


# --- Canvas ---------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("name", ["001, Student", "Student 001", "student  001", "STUDENT 001"])
def test_a_full_name_decides_where_no_id_is_known(name: str) -> None:
    before, after = both(CANVAS)
    assert fill_canvas(before, [mark("x", 7.5, name=name), *MARKS[1:]]).data == after


def test_a_login_may_be_an_email_or_what_the_submission_is_called() -> None:
    before, after = both(CANVAS)
    mailed = mark("x", 7.5, email="S001@school.example")
    assert fill_canvas(before, [mailed, *MARKS[1:]]).data == after
    assert fill_canvas(before, [mark("s001@school.example", 7.5), *MARKS[1:]]).data == after
    assert "no row" in refused(fill_canvas, before, [mark("n1", 7.5)])


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


def test_a_row_that_ends_early_is_refused() -> None:
    page = b"Student,ID,Section,Homework (1)\ns001,7001,A\n"
    assert "line 2 of the gradebook ends before" in refused(fill_canvas, page, [mark("7001", 1)])


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


def test_canvas_takes_extra_credit() -> None:
    assert b'A\r\nB",12,' in fill_canvas(both(CANVAS)[0], [mark("7001", 12)]).data


def test_the_test_student_needs_no_mark_but_may_have_one() -> None:
    filled = fill_canvas(both(CANVAS)[0], [mark("7999", 3)])
    assert filled.data.endswith(b'"Student, Test",7999,,t999,A,3,')


# --- Moodle ---------------------------------------------------------------------------------------

ENGLISH = (
    "Identifier,Full name,Email address,Status,Group,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\n"
    '"Participant 3000001",Student 001,s001@school.example,Submitted for grading,A,[[|7.5]],10.00,'
    'Yes,"Monday, 7 January 2030, 10:15 AM",-,"<p>Well,\n""done""</p>"\n'
    'Participant 3000002,"Student ""002""",s002@school.example,No submission,,"[[1.00|10]]",10.00,'
    "No,-,-,\n"
    "Participant 3000003,Student 003,s003@school.example,No submission,A,,10.00,Yes,-,-,\n"
)
GERMAN = (
    "ID,Vollständiger Name,ID-Nummer,E-Mail-Adresse,Status,Bewertung,Bestwertung,"
    "Bewertung kann geändert werden,Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung),"
    "Feedback als Kommentar\r\n"
    "Teilnehmer/in3000001,Student 001,12345678,s001@school.example,Zur Bewertung abgegeben,"
    '[["3,50"|"7,5"]],"10,00",Ja,"Montag, 7. Januar 2030, 10:15","Montag, 7. Januar 2030",\r\n'
    "Teilnehmer/in3000002,Student 002,12345678,s002@school.example,Keine Abgabe,"
    '[[|10]],"10,00",Nein,-,-,\r\n'
    "Teilnehmer/in3000003,Student 003,,s003@school.example,Keine Abgabe,"
    ',"10,00",Ja,-,-,\r\n'
)
FRENCH = (
    "Identifiant;Nom complet;Adresse de courriel;Statut;Groupe;Note;Note maximale;"
    "État;La note peut être modifiée;Dernière modification (note);Feedback par commentaires\n"
    "Participant3000001;Étudiant 001;s001@school.example;Remis pour évaluation;2;[[|7,5]];10,00;"
    "Non évalué;Oui;-;\n"
    "Participant3000002;Étudiant 002;s002@school.example;Aucun travail remis;2;[[3,00|10]];10,00;"
    "Non évalué;Non;-;bien\n"
    "Participant3000003;Étudiant 003;s003@school.example;Aucun travail remis;2;;10,00;"
    "Non évalué;Oui;-;\n"
)
BLIND = (
    "Identifier,Status,Grade,Maximum Grade,Grade can be changed,Last modified (grade)\n"
    "Participant 3000001,-,[[|7.5]],10.00,Yes,-\nParticipant 3000002,-,[[|10]],10.00,Yes,-\n"
)
PLAIN = [mark("3000001", 7.5), mark("Participant 3000002", 10)]
MAILED = [mark("3000001", 7.5), mark("x", 10, email="S002@school.example")]


@pytest.mark.parametrize("start", [b"", BOM])
@pytest.mark.parametrize(
    ("page", "marks", "column", "without"),
    [
        (ENGLISH, PLAIN, "Grade", ("Student 003",)),
        (GERMAN, MAILED, "Bewertung", ("Student 003",)),
        (FRENCH, MAILED, "Note", ("Étudiant 003",)),
        (FRENCH, [MAILED[0], mark("x", 10, name="étudiant 002")], "Note", ("Étudiant 003",)),
        (BLIND, PLAIN, "Grade", ()),
        (ENGLISH.replace("Identifier", "Kennung"), PLAIN, "Grade", ("Student 003",)),
    ],
)
def test_moodle_gets_the_grades_and_keeps_every_other_byte(
    page: str, marks: list[StudentMark], column: str, without: tuple[str, ...], start: bytes
) -> None:
    before, after = both(page, start)
    filled = fill_moodle(before, marks)
    assert filled.data == after
    assert (filled.column, filled.written, filled.without) == (column, 2, without)


@pytest.mark.parametrize(
    "page",
    [
        "ID,Name,Status,Note,Höchste,Änderbar\nP1,s001,da,[[10|4]],10,Ja\nP2,s002,da,10,10,Ja\n",
        "ID,Name,Nummer,Status,Note,Höchste,Änderbar\nP1,s001,12345,da,[[10|4]],10,Ja\n",
        "ID,Name,Gruppe,Jahr,Art,Note,Höchste,Änderbar\nP1,s001,7,5,A,[[|4]],10,Ja\n",
        "ID,Name,Gruppe,Jahr,Art,Note,Höchste,Änderbar\nP1,s001,5,7,2,[[|4]],10,Ja\n",
        "ID,Name,Art,Jahr,Ort,Note,Höchste,Änderbar\n"
        "P1,s001,,7,A,[[|4]],10,Ja\nP2,s002,,8,A,,10,Ja\n",
    ],
)
def test_other_numbers_are_not_taken_for_the_maximum(page: str) -> None:
    before, after = both(page)
    filled = fill_moodle(before, [mark("1", 4)])
    assert (filled.data, filled.column) == (after, "Note")


AMBIGUOUS = (
    "ID,Name,Pflicht,Punkte,Seite,Note,Höchste,Änderbar\n"
    "P1,s001,,5,A,{},10,Ja\nP2,s002,,5,A,,10,Nein\n"
)


def test_the_user_must_choose_if_two_columns_could_hold_the_grades() -> None:
    before = AMBIGUOUS.format("").encode()
    said = refused(fill_moodle, before, [mark("1", 4)])
    assert "several columns could hold the grades: 'Pflicht', 'Note'" in said
    assert "--column" in said
    filled = fill_moodle(before, [mark("1", 4)], column="Note")
    assert filled.data == AMBIGUOUS.format("4").encode()
    said = refused(fill_moodle, before, [mark("1", 4)], column="Name")
    assert "'Name' is not followed by one that holds the maximum grade" in said


def test_columns_with_english_names_are_recognised_by_name() -> None:
    page = AMBIGUOUS.replace("Note,Höchste", "Grade,Maximum Grade")
    filled = fill_moodle(page.format("").encode(), [mark("1", 4)])
    assert filled.data == page.format("4").encode()


def test_an_exact_header_comes_before_headers_that_contain_it() -> None:
    before, after = both(FRENCH)
    assert fill_moodle(before, MAILED, column="Note").data == after
    assert "4 columns match 'note'" in refused(fill_moodle, before, MAILED, column="note")


def test_a_worksheet_without_grades_or_participants_is_refused() -> None:
    words = "Identifier,Full name,Grade,Scale,Grade can be changed\nParticipant 1,s001,,good,Yes\n"
    said = refused(fill_moodle, words.encode(), [mark("1", 4)])
    assert "no column seems to hold the grades: 'Identifier', 'Full name', 'Grade', 'Scale'" in said
    said = refused(fill_moodle, b"a,b\ns001,x\nt002,x\n", [])
    assert "no column holds participants with their numbers: 'a', 'b'" in said
    assert "no students" in refused(fill_moodle, b"Identifier,Grade\n", [])


def test_marks_with_another_maximum_are_refused_or_scaled_for_moodle() -> None:
    before, after = both(GERMAN)
    marks = [StudentMark(one.student, one.person, one.points * 4, 40) for one in MAILED]
    assert "out of 10 points, the marks are out of 40" in refused(fill_moodle, before, marks)
    assert fill_moodle(before, marks, scale=True).data == after


def test_a_grade_that_moodle_would_ignore_is_refused() -> None:
    marks = [mark("3000001", 12.5), mark("3000002", -1), mark("3000003", 10)]
    said = refused(fill_moodle, both(ENGLISH)[0], marks)
    assert "from 0 to 10, and would ignore 3000001: 12.5; 3000002: -1" in said


def test_unknown_participants_are_reported() -> None:
    said = refused(fill_moodle, both(ENGLISH)[0], [mark("s009", 1, email="s009@school.example")])
    assert "s009: no row" in said
    twice = ENGLISH.replace("s002@", "s001@")
    said = refused(fill_moodle, both(twice)[0], [mark("x", 1, email="s001@school.example")])
    assert "x: lines 2, 4 all match" in said


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


def test_of_two_students_in_one_row_neither_gets_in_it() -> None:
    page = b"Student,ID,SIS User ID,Section,Homework (1)\ns001,7001,n1,A,\ns002,7002,n2,A,\n"
    marks = [mark("7001", 1), mark("again", 2, number="n1"), mark("7002", 3)]
    filled = fill_canvas(page, marks, skip_unmatched=True)
    assert filled.data == page.replace(b"n2,A,", b"n2,A,3")
    assert filled.unmatched == (
        "again: line 2 also matches 7001",
        "7001: line 2 also matches again",
    )


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


# --- large classes --------------------------------------------------------------------------------


@pytest.mark.slow
@PROPERTY
@given(
    st.lists(st.tuples(TEXT, st.integers(0, 400)), min_size=1, max_size=8),
    st.sampled_from(DELIMITERS),
    st.booleans(),
)
def test_every_mark_is_filled_in_or_none(students: Any, delimiter: bytes, quoted: bool) -> None:
    rows = [["Student", "ID", "Section", "Homework (1)", "Final Grade"]]
    rows += [[name, f"70{n}", "A", "", name] for n, (name, _) in enumerate(students)]
    before = written(rows, delimiter, "\r\n", quoted, False)
    marks = [mark(f"70{n}", fortieths / 40) for n, (_, fortieths) in enumerate(students)]
    filled = fill_canvas(before, marks)
    for row, one in zip(rows[1:], marks):
        row[3] = format_number(Decimal(str(one.points)).quantize(Decimal("0.01"), "ROUND_HALF_UP"))
    assert filled.data == written(rows, delimiter, "\r\n", quoted, False)
    assert "no row" in refused(fill_canvas, before, [*marks, mark("nobody", 1)])
