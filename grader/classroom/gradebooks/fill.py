"""Filling in one column of a gradebook: choosing it, checking the points, writing the marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from grader.classroom.gradebooks.match import GradebookRow, StudentMark, match_rows
from grader.classroom.gradebooks.table import CsvRecord, Table
from grader.errors import RequestError
from grader.submissions.notes import folded, shortened

_TITLE_AND_NUMBER = re.compile(r"(.*?)\s*\(([0-9]+)\)", re.DOTALL)
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)?")
SMALLEST = Decimal("0.01")


@dataclass(frozen=True)
class Filled:
    """A gradebook with one column filled in: its bytes, the column, and how many marks it got.

    `without` names the students who have no mark, `excused` those who have one but whose cell says
    that they are excused. The cells of both are unchanged.
    """

    data: bytes
    column: str
    written: int
    without: tuple[str, ...]
    excused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scale:
    """The scale of a gradebook: its maximum (None if unknown), and how it writes numbers.

    `comma` asks for decimal commas, `scaled` for marks that are converted to the maximum. A scale
    is `closed` if the platform ignores marks below 0 and above the maximum.
    """

    maximum: Decimal | None = None
    comma: bool = False
    scaled: bool = False
    closed: bool = False

    def value(self, mark: StudentMark) -> Decimal:
        """Return a mark in the gradebook's points, rounded to two decimals."""
        points = Decimal(str(mark.points))
        if self.scaled and self.maximum is not None:
            points *= self.maximum / Decimal(str(mark.max_points))
        return _rounded(points)

    def text(self, mark: StudentMark) -> str:
        """Return a mark as the gradebook writes it."""
        text = format_number(self.value(mark))
        return text.replace(".", ",") if self.comma else text

    def check(self, marks: Sequence[StudentMark]) -> None:
        """Raise `RequestError` unless the gradebook can take every mark."""
        for mark in marks:
            if not all(Decimal(str(n)).is_finite() for n in (mark.points, mark.max_points)):
                raise RequestError(f"the mark of {mark.who} is not a number", "grade it again")
        self._check_maxima({_rounded(Decimal(str(mark.max_points))) for mark in marks})
        if self.closed and self.maximum is not None:
            self._check_range(self.maximum, marks)

    def _check_maxima(self, maxima: set[Decimal]) -> None:
        ours = " or ".join(format_number(maximum) for maximum in sorted(maxima))
        theirs = "none" if self.maximum is None else format_number(self.maximum)
        if self.scaled and (not self.maximum or not all(maxima)):
            raise RequestError(
                f"the marks cannot be scaled: the gradebook's maximum is {theirs}, ours is {ours}",
                "leave out --scale",
            )
        if not self.scaled and self.maximum is not None and maxima - {self.maximum}:
            raise RequestError(
                f"the gradebook is out of {theirs} points, the marks are out of {ours}",
                f"--scale converts the marks to marks out of {theirs}",
            )

    def _check_range(self, maximum: Decimal, marks: Iterable[StudentMark]) -> None:
        beyond = [mark for mark in marks if not 0 <= self.value(mark) <= maximum]
        if beyond:
            listed = [f"{mark.who}: {format_number(self.value(mark))}" for mark in beyond]
            raise RequestError(
                f"the gradebook takes marks from 0 to {format_number(maximum)}, and would ignore "
                f"{folded(listed)}",
                "raise the maximum there and download it again",
            )


def fill_column(
    table: Table, column: int, rows: list[GradebookRow], marks: Sequence[StudentMark], scale: Scale
) -> Filled:
    """Write each mark into the row of its student.

    Raises `RequestError` if a mark has no row of its own, or does not fit the scale. Then nothing
    is written.
    """
    if not rows:
        raise RequestError("the gradebook has no students", "download it again")
    scale.check(marks)
    found = match_rows(marks, rows)
    free = {index: mark for index, mark in found.items() if not rows[index].excused}
    data = table.filled({rows[index].field: scale.text(mark) for index, mark in free.items()})
    unmarked = (row for index, row in enumerate(rows) if index not in found)
    without = tuple(row.name for row in unmarked if row.is_student)
    excused = tuple(rows[index].name for index in sorted(found.keys() - free.keys()))
    return Filled(data, table.columns[column], len(free), without, excused)


def find_column(columns: Mapping[int, str], wanted: str) -> int:
    """Find the column by header, by assignment title or number, or else by a part of the header.

    Raises `RequestError` unless exactly one column matches.
    """
    exact, folded = wanted.strip(), wanted.strip().casefold()
    rules = (
        [index for index, name in columns.items() if name == exact],
        [index for index, name in columns.items() if exact in _title_and_number(name)],
        [index for index, name in columns.items() if folded and folded in name.casefold()],
    )
    found: list[int] = next(filter(None, rules), [])
    if len(found) != 1:
        match = f"{len(found)} columns match" if found else "no column to fill in matches"
        among = list_columns({index: columns[index] for index in found} or columns)
        raise RequestError(f"{match} {wanted!r}: {among}", "--column with one of them")
    return found[0]


def _title_and_number(name: str) -> tuple[str, ...]:
    found = _TITLE_AND_NUMBER.fullmatch(name)
    return found.groups() if found else ()


def list_columns(columns: Mapping[int, str]) -> str:
    """Return the names of columns, for a message."""
    return ", ".join(shortened([repr(name) for name in columns.values()])) or "(none)"


def row_line(table: Table, record: CsvRecord, column: int) -> int:
    """Return the line of a student's row; raise `RequestError` if it ends before the column."""
    line = table.line(record[0])
    if column >= len(record):
        raise RequestError(
            f"line {line} of the gradebook ends before the column {table.columns[column]!r}",
            "download it again",
        )
    return line


def parse_number(text: str) -> Decimal | None:
    """Return a number from 0 up, with a decimal point or comma; None for any other text."""
    text = text.strip()
    return Decimal(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None


def has_decimal_comma(texts: Iterable[str]) -> bool:
    """Return whether one of the texts is a number with a decimal comma."""
    return any("," in text and parse_number(text) is not None for text in texts)


def _rounded(value: Decimal) -> Decimal:
    return value.quantize(SMALLEST, ROUND_HALF_UP)


def format_number(value: Decimal) -> str:
    """Return a number without trailing zeros."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
