"""The gradebook that Canvas exports, with the marks of one assignment filled in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.errors import RequestError
from grader.classroom.gradebooks.filling import Filled, chosen, fill, listed, place
from grader.classroom.gradebooks.marks import Scale, has_commas, number
from grader.classroom.gradebooks.people import Graded, Row, key
from grader.classroom.gradebooks.table import Record, Table, read

WHO = (
    "Student", "LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID", "Integration ID",
    "Root Account", "Section",
)  # fmt: skip
# What Canvas computes itself, and does not read again, whatever else the name says.
_COMPUTED = re.compile(r"(?:Current|Final|Override) (?:Score|Points|Grade)|Override Status")
_ASSIGNMENT = re.compile(r"\([0-9]+\)$")
_POSTING = re.compile(r"(?:muted|manual posting.*)?", re.IGNORECASE | re.DOTALL)
EXCUSED = ("EX", "N/A")  # the second: the assignment is not this student's
TEST_STUDENT = "Student, Test"
WORTH = "Points Possible"


def fill_canvas(
    data: bytes, graded: Sequence[Graded], *, column: str | None = None, scale: bool = False
) -> Filled:
    """A downloaded gradebook with the marks in one assignment's column, and nothing else changed.

    The assignment is `column` (its title, a part of it that no other has, or its number), or the
    only one there is. `scale` turns the marks into its points.
    """
    table = read(data)
    who = {name: index for index, name in reversed(list(enumerate(table.columns))) if name in WHO}
    if "ID" not in who or not ("Student" in who or {"LastName", "FirstName"} <= who.keys()):
        raise RequestError(
            "this is no gradebook of Canvas: its first line has no columns Student and ID",
            "download it in Canvas: Grades, Export",
        )
    worth = next((r for r in table.records if _is_worth(table, r)), None)
    at = _assignment(table, worth, column)
    students = [r for r in table.records if r is not worth and not _is_no_student(table, r)]
    rows = [_row(table, record, who, at) for record in students]
    points = table.cell(worth, at) if worth else ""
    if points and number(points) is None:
        raise RequestError(
            f"the gradebook's {WORTH} are no number in {table.columns[at]!r}: {points!r}",
            "download it again",
        )
    comma = has_commas([points, *(table.cell(record, at) for record in students)])
    return fill(table, at, rows, graded, Scale(number(points), comma, scale))


def _is_worth(table: Table, record: Record) -> bool:
    return WORTH.casefold() in table.cell(record, 0).casefold()


def _is_no_student(table: Table, record: Record) -> bool:
    """Whether a row says nothing, or only which assignments are posted by hand."""
    return all(_POSTING.fullmatch(table.text(field).strip()) for field in record)


def _assignment(table: Table, worth: Record | None, wanted: str | None) -> int:
    open_ = {
        index: name
        for index, name in enumerate(table.columns)
        if name and name not in WHO and not _COMPUTED.search(name)
        if worth is None or "read only" not in table.cell(worth, index)
    }
    if wanted is not None:
        return chosen(open_, wanted)
    assignments = {index: name for index, name in open_.items() if _ASSIGNMENT.search(name)}
    if len(assignments) != 1:
        raise RequestError(
            f"the gradebook has {len(assignments) or 'no'} assignments to choose from: "
            f"{listed(assignments or open_)}",
            "--column with the title or the number of one of them",
        )
    return next(iter(assignments))


def _row(table: Table, record: Record, who: dict[str, int], at: int) -> Row:
    def cell(name: str) -> str:
        return table.cell(record, who.get(name))

    name = cell("Student") or f"{cell('FirstName')} {cell('LastName')}".strip()
    line = place(table, record, at)
    keys = (
        *key("id", cell("ID")),
        *key("login", cell("SIS Login ID")),
        *key("number", cell("SIS User ID")),
    )
    return Row(
        name=name or cell("ID"),
        keys=frozenset(keys),
        line=line,
        field=record[at],
        excused=table.cell(record, at).upper() in EXCUSED,
        is_student=name != TEST_STUDENT,
    )
