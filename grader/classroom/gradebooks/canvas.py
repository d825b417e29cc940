"""The gradebook that Canvas exports: its assignments and its students' rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.classroom.gradebooks import fill
from grader.classroom.gradebooks.match import GradebookRow, StudentMark, keys
from grader.classroom.gradebooks.table import CsvRecord, Table, read_table
from grader.errors import RequestError

STUDENT_COLUMNS = (
    "Student", "LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID", "Integration ID",
    "Root Account", "Section",
)  # fmt: skip
# Columns that Canvas computes and does not import, whatever else is in their names.
_COMPUTED = re.compile(r"(?:Current|Final|Override) (?:Score|Points|Grade)|Override Status")
_ASSIGNMENT = re.compile(r"\([0-9]+\)$")
_POSTING = re.compile(r"(?:muted|manual posting.*)?", re.IGNORECASE | re.DOTALL)
EXCUSED = ("EX", "N/A")  # N/A: the assignment was not given to this student
TEST_STUDENT = "Student, Test"
POINTS_POSSIBLE = "Points Possible"


def fill_canvas(
    data: bytes, marks: Sequence[StudentMark], *, column: str | None = None, scale: bool = False
) -> fill.Filled:
    """Fill the marks into one assignment of a downloaded gradebook.

    `column` is the assignment's title, a unique part of it, or its number; without it there must
    be only one assignment. `scale` converts the marks to the assignment's points. Raises
    `RequestError` and writes nothing unless every mark has a row of its own.
    """
    table = read_table(data)
    names = reversed(list(enumerate(table.columns)))
    known = {name: index for index, name in names if name in STUDENT_COLUMNS}
    if "ID" not in known or not ("Student" in known or {"LastName", "FirstName"} <= known.keys()):
        raise RequestError(
            "this is not a gradebook of Canvas: its first line has no columns Student and ID",
            "download it in Canvas: Grades, Export",
        )
    maxima = next((r for r in table.records if _is_maxima(table, r)), None)
    assignment = _assignment(table, maxima, column)
    students = [r for r in table.records if r is not maxima and not _is_no_student(table, r)]
    rows = [_row(table, record, known, assignment) for record in students]
    maximum = table.cell(maxima, assignment) if maxima else ""
    points = fill.parse_number(maximum)
    if maximum and points is None:
        raise RequestError(
            f"the gradebook's {POINTS_POSSIBLE} are not a number in "
            f"{table.columns[assignment]!r}: {maximum!r}",
            "download it again",
        )
    cells = [maximum, *(table.cell(record, assignment) for record in students)]
    gradebook = fill.Scale(points, fill.has_decimal_comma(cells), scale)
    return fill.fill_column(table, assignment, rows, marks, gradebook)


def _is_maxima(table: Table, record: CsvRecord) -> bool:
    return POINTS_POSSIBLE.casefold() in table.cell(record, 0).casefold()


def _is_no_student(table: Table, record: CsvRecord) -> bool:
    return is_posting([table.text(field).strip() for field in record])


def is_posting(cells: Sequence[str]) -> bool:
    """Return whether a row is empty, or only names the assignments that are posted by hand."""
    return all(map(_POSTING.fullmatch, cells))


def is_no_student(cells: Sequence[str]) -> bool:
    """Return whether a row of a gradebook is none of a student's: maxima, postings, or empty."""
    return is_posting(cells) or any(
        cell.casefold().startswith(POINTS_POSSIBLE.casefold()) for cell in cells
    )


def _assignment(table: Table, maxima: CsvRecord | None, wanted: str | None) -> int:
    """Return the column of the assignment; raise `RequestError` if it is not clear which."""
    writable = {
        index: name
        for index, name in enumerate(table.columns)
        if name and name not in STUDENT_COLUMNS and not _COMPUTED.search(name)
        if maxima is None or "read only" not in table.cell(maxima, index)
    }
    if wanted is not None:
        return fill.find_column(writable, wanted)
    assignments = {index: name for index, name in writable.items() if _ASSIGNMENT.search(name)}
    if len(assignments) != 1:
        raise RequestError(
            f"the gradebook has {len(assignments) or 'no'} assignments to choose from: "
            f"{fill.list_columns(assignments or writable)}",
            "--column with the title or the number of one of them",
        )
    return next(iter(assignments))


def _row(table: Table, record: CsvRecord, known: dict[str, int], assignment: int) -> GradebookRow:
    def cell(name: str) -> str:
        return table.cell(record, known.get(name))

    name = cell("Student") or f"{cell('FirstName')} {cell('LastName')}".strip()
    return GradebookRow(
        name=name or cell("ID"),
        keys=keys(id=[cell("ID")], login=[cell("SIS Login ID")], number=[cell("SIS User ID")]),
        line=fill.row_line(table, record, assignment),
        field=record[assignment],
        excused=table.cell(record, assignment).upper() in EXCUSED,
        is_student=name != TEST_STUDENT,
    )
