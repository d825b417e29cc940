"""A CSV table is filled in cell by cell, and no other byte changes."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from typing import Any

import pytest
from gradebook_files import both, mark, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.classroom.gradebooks import fill_canvas
from grader.classroom.gradebooks.fill import format_number, parse_number
from grader.classroom.gradebooks.table import BOM, DELIMITERS, Field, read_table

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
