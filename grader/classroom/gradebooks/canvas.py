"""The gradebook that Canvas exports: its assignments and its students' rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from grader.classroom.gradebooks import fill
from grader.classroom.gradebooks.match import GradebookRow, StudentMark, keys
from grader.classroom.gradebooks.table import CsvRecord, Table, read_table
from grader.errors import RequestError
from grader.report import Person

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
    data: bytes,
    marks: Sequence[StudentMark],
    *,
    column: str | None = None,
    scale: bool = False,
    per_exercise: bool = False,
    skip_unmatched: bool = False,
) -> fill.Filled:
    """Fill the marks into one assignment of a downloaded gradebook.

    `column` is the assignment's title, a unique part of it, or its number; without it there must
    be only one assignment. `scale` converts the marks to the assignment's points. With
    `per_exercise`, the points of each exercise go into the assignment that is called after it, or
    into a new one, and the marks themselves only into a `column`. Raises `RequestError` and writes
    nothing unless every mark has a row of its own; `skip_unmatched` leaves out those without.
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
    students = [r for r in table.records if r is not maxima and not _is_no_student(table, r)]
    rows = [_row(table, record, known) for record in students]
    gradebook = _Gradebook(table, maxima, students, scale)
    columns = []
    if column is not None or not per_exercise:
        columns.append(gradebook.mark_column(_assignment(gradebook.writable, column)))
    if per_exercise:
        columns += gradebook.exercise_columns(marks)
    return fill.fill_columns(table, columns, rows, marks, skip_unmatched)


@dataclass(frozen=True)
class _Gradebook:
    """The columns of a gradebook that can be filled in; `maxima` has the points possible."""

    table: Table
    maxima: CsvRecord | None
    students: Sequence[CsvRecord]
    scaled: bool

    @cached_property
    def writable(self) -> dict[int, str]:
        """The names of the columns that Canvas imports, by their index."""
        return {
            index: name
            for index, name in enumerate(self.table.columns)
            if name and name not in STUDENT_COLUMNS and not _COMPUTED.search(name)
            if self.maxima is None or "read only" not in self.table.cell(self.maxima, index)
        }

    def mark_column(self, assignment: int) -> fill.Column:
        return fill.mark_column(self.table, assignment, self._scale(assignment), _is_excused)

    def exercise_columns(self, marks: Sequence[StudentMark]) -> Iterator[fill.Column]:
        """Yield a column for each exercise: the assignment that is called after it, or a new one.

        Canvas offers to make an assignment of a new column, worth the points possible.
        """
        for exercise in fill.exercises_of(marks):
            index = fill.find_exercise(self.writable, exercise)
            if index is not None:
                name, where = self.table.columns[index], f"the column of {exercise.name}"
                scale = replace(self._scale(index), where=where)
                yield fill.exercise_column(name, index, exercise.name, scale, _is_excused)
                continue
            scale = fill.Scale(comma=self._has_commas)
            full = StudentMark("", Person(), exercise.max_points, exercise.max_points)
            above = {self.maxima: scale.text(full)} if self.maxima else {}
            title = exercise.title or exercise.name
            yield fill.exercise_column(title, None, exercise.name, scale, above=above)

    @cached_property
    def _has_commas(self) -> bool:
        records = self.students if self.maxima is None else [self.maxima, *self.students]
        return fill.has_decimal_comma(
            self.table.cell(record, index) for record in records for index in self.writable
        )

    def _scale(self, assignment: int) -> fill.Scale:
        maximum = self.table.cell(self.maxima, assignment) if self.maxima else ""
        points = fill.parse_number(maximum)
        if maximum and points is None:
            raise RequestError(
                f"the gradebook's {POINTS_POSSIBLE} are not a number in "
                f"{self.table.columns[assignment]!r}: {maximum!r}",
                "download it again",
            )
        cells = [maximum, *(self.table.cell(record, assignment) for record in self.students)]
        return fill.Scale(points, fill.has_decimal_comma(cells), self.scaled)


def _is_excused(cell: str) -> bool:
    return cell.upper() in EXCUSED


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


def _assignment(writable: dict[int, str], wanted: str | None) -> int:
    """Return the column of the assignment; raise `RequestError` if it is not clear which."""
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


def _row(table: Table, record: CsvRecord, known: dict[str, int]) -> GradebookRow:
    def cell(name: str) -> str:
        return table.cell(record, known.get(name))

    name = cell("Student") or f"{cell('FirstName')} {cell('LastName')}".strip()
    return GradebookRow(
        name=name or cell("ID"),
        keys=keys(id=[cell("ID")], login=[cell("SIS Login ID")], number=[cell("SIS User ID")]),
        line=table.line(record[0]),
        record=record,
        is_student=name != TEST_STUDENT,
    )
