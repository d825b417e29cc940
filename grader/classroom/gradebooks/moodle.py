"""The grading worksheet that Moodle exports, in any language, with the grades filled in.

Its columns have a fixed order, Moodle writes their names in the language of whoever downloads it:
where they are not the English ones, the values say which is which.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from grader.errors import RequestError
from grader.classroom.gradebooks.filling import Filled, chosen, fill, listed, place
from grader.classroom.gradebooks.marks import Scale, has_commas, number
from grader.classroom.gradebooks.people import Graded, Row, key
from grader.classroom.gradebooks.table import Record, Table, read

_PARTICIPANT = re.compile(r"(.*[^0-9])([0-9]+)", re.DOTALL)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
DOWNLOAD = "download it in Moodle: the assignment, Submissions, Download grading worksheet"


@dataclass(frozen=True)
class Columns:
    """Where a worksheet has what; None where it has no such column."""

    identifier: int
    grade: int
    maximum: int
    name: int | None
    email: int | None


def fill_moodle(
    data: bytes, graded: Sequence[Graded], *, column: str | None = None, scale: bool = False
) -> Filled:
    """A downloaded grading worksheet with the grades in it, and nothing else changed.

    `column` names the column of grades where it cannot be told. `scale` turns the marks into
    grades out of the worksheet's maximum.
    """
    table = read(data)
    records = [r for r in table.records if any(table.text(field).strip() for field in r)]
    if not records:
        raise RequestError("the worksheet has no students", DOWNLOAD)
    at = _columns(table, records, column)
    rows = [_row(table, record, at) for record in records]
    maxima = [table.cell(record, at.maximum) for record in records]
    counts = Scale(number(maxima[0]), has_commas(maxima), scale, closed=True)
    return fill(table, at.grade, rows, graded, counts)


# --- which column is which ------------------------------------------------------------------------


def _columns(table: Table, records: Sequence[Record], wanted: str | None) -> Columns:
    known = {name.casefold(): i for i, name in reversed(list(enumerate(table.columns)))}
    values = [
        [table.cell(record, index) for record in records] for index in range(len(table.columns))
    ]
    identifier = next((i for i, each in enumerate(values) if _are_participants(each)), None)
    if identifier is None:
        among = listed(dict(enumerate(table.columns)))
        raise RequestError(f"no column ends in the participants' numbers: {among}", DOWNLOAD)
    grade, maximum = _grade(table, values, known, wanted)
    emails = (i for i, each in enumerate(values) if _are_emails(each))
    name = known.get("full name", identifier + 1)
    return Columns(
        identifier,
        grade,
        maximum,
        name if name < len(values) and name != grade else None,
        known.get("email address", next(emails, None)),
    )


def _grade(
    table: Table, values: Sequence[Sequence[str]], known: dict[str, int], wanted: str | None
) -> tuple[int, int]:
    """The column of grades and that of the maximum."""
    names = dict(enumerate(table.columns))
    if wanted is None and "grade" in known and _is_maximum(values, known.get("maximum grade")):
        return known["grade"], known["maximum grade"]
    found = [i - 1 for i in range(1, len(values)) if _is_maximum(values, i) and _fits(values, i)]
    if wanted is not None:
        grade = chosen(names, wanted)
        if not _is_maximum(values, grade + 1):
            raise RequestError(
                f"the column {names[grade]!r} is not followed by one that holds the maximum grade",
                f"--column with one of {listed({i: names[i] for i in found} or names)}",
            )
        return grade, grade + 1
    if len(found) != 1:
        told = "could be any of these" if found else "cannot be told"
        among = listed({i: names[i] for i in found} or names)
        raise RequestError(
            f"which column holds the grades {told}: {among}",
            "--column with the one that the maximum grade follows",
        )
    return found[0], found[0] + 1


def _is_maximum(values: Sequence[Sequence[str]], index: int | None) -> bool:
    """Whether a column holds one positive number, the same for all."""
    if index is None or index >= len(values):
        return False
    most = number(values[index][0])
    return bool(most) and len(set(values[index])) == 1


def _fits(values: Sequence[Sequence[str]], index: int) -> bool:
    """Whether what is before and after a maximum is what Moodle has there.

    Before it are grades: nothing, or numbers up to the maximum. After it are words: whether the
    grade can be changed, or how far the marking is.
    """
    most = number(values[index][0])
    grades = [number(text) for text in values[index - 1] if text]
    if most is None or any(grade is None or grade > most for grade in grades):
        return False
    after = values[index + 1] if index + 1 < len(values) else []
    return bool(after) and all(text and number(text) is None for text in after)


def _are_participants(texts: Sequence[str]) -> bool:
    found = [_PARTICIPANT.fullmatch(text) for text in texts]
    return all(found) and len({match[1] for match in found if match}) == 1


def _are_emails(texts: Sequence[str]) -> bool:
    return any(texts) and all(_EMAIL.fullmatch(text) for text in texts if text)


def _row(table: Table, record: Record, at: Columns) -> Row:
    identifier = table.cell(record, at.identifier)
    found = _PARTICIPANT.fullmatch(identifier)
    keys = (
        *key("id", identifier),
        *key("id", found[2] if found else ""),
        *key("email", table.cell(record, at.email)),
    )
    return Row(
        name=table.cell(record, at.name) or identifier,
        keys=frozenset(keys),
        line=place(table, record, at.grade),
        field=record[at.grade],
    )
