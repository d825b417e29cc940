"""Filling one column of a gradebook: what both platforms have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.errors import RequestError
from grader.classroom.gradebooks.marks import Scale, check
from grader.classroom.gradebooks.people import Graded, Row, matched
from grader.classroom.gradebooks.table import Record, Table

SHOWN = 20  # columns that a message names
_NUMBERED = re.compile(r"(.*?)\s*\(([0-9]+)\)", re.DOTALL)


@dataclass(frozen=True)
class Filled:
    """A gradebook with one column filled in: the file, the column, and how many marks went in.

    `without` names the rows for which there is no mark, `excused` those that have one but whose
    cell says that none is asked of them; both are as they were.
    """

    data: bytes
    column: str
    written: int
    without: tuple[str, ...]
    excused: tuple[str, ...] = ()


def fill(
    table: Table, column: int, rows: Sequence[Row], graded: Sequence[Graded], scale: Scale
) -> Filled:
    """Write each mark into its student's row; raises `RequestError` and writes nothing at all
    unless every one of them has a row of their own and counts out of the same points.
    """
    if not rows:
        raise RequestError("the gradebook has no students", "download it again")
    check(scale, graded)
    found = matched(graded, rows)
    free = {index: one for index, one in found.items() if not rows[index].excused}
    return Filled(
        data=table.filled({rows[index].field: scale.written(one) for index, one in free.items()}),
        column=table.columns[column],
        written=len(free),
        without=tuple(
            row.name for index, row in enumerate(rows) if index not in found and row.is_student
        ),
        excused=tuple(rows[index].name for index in sorted(found.keys() - free.keys())),
    )


def chosen(columns: Mapping[int, str], wanted: str) -> int:
    """The column that is called `wanted`, or has it for its title or for the number in brackets
    that follows the title, or else has it in its name.
    """
    exact, folded = wanted.strip(), wanted.strip().casefold()
    rules = (
        [index for index, name in columns.items() if name == exact],
        [index for index, name in columns.items() if exact in _title_and_number(name)],
        [index for index, name in columns.items() if folded and folded in name.casefold()],
    )
    found: list[int] = next(filter(None, rules), [])
    if len(found) != 1:
        what = f"{len(found)} columns are" if found else "no column that can be filled in is"
        among = {index: columns[index] for index in found} or columns
        raise RequestError(
            f"{what} called {wanted!r}: {listed(among)}", "--column with one of them"
        )
    return found[0]


def _title_and_number(name: str) -> tuple[str, ...]:
    found = _NUMBERED.fullmatch(name)
    return (found[1], found[2]) if found else ()


def listed(columns: Mapping[int, str]) -> str:
    """The names of columns, for a message."""
    names = [repr(name) for name in columns.values()]
    more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join([*names[:SHOWN], *more]) or "there is none"


def place(table: Table, record: Record, column: int) -> int:
    """The line of a student's row; raises `RequestError` if the row ends before the column."""
    line = table.line(record[0])
    if column >= len(record):
        raise RequestError(
            f"line {line} of the gradebook ends before the column {table.columns[column]!r}",
            "download it again",
        )
    return line
