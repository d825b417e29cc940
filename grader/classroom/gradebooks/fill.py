"""Filling in columns of a gradebook: choosing them, checking the points, writing the marks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

from grader.classroom.gradebooks.match import (
    ExercisePoints,
    GradebookRow,
    StudentMark,
    match_rows,
)
from grader.classroom.gradebooks.table import CsvRecord, Field, Table
from grader.errors import RequestError
from grader.submissions.notes import folded, shortened

_TITLE_AND_NUMBER = re.compile(r"(.*?)\s*\(([0-9]+)\)", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,12}(?:[.,][0-9]{1,12})?")  # digits of a number; no points have more
SMALLEST = Decimal("0.01")


@dataclass(frozen=True)
class Filled:
    """A gradebook with columns filled in: its bytes, their names, and how many marks it got.

    `without` names the students who have no mark, `excused` those who have one but whose cell says
    that they are excused, `commented` those with a comment of somebody else. The cells of all are
    unchanged. `unmatched` says who has a mark and no row, `guessed` whose number lost a 0.
    """

    data: bytes
    column: str
    written: int
    without: tuple[str, ...]
    excused: tuple[str, ...] = ()
    commented: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scale:
    """The scale of a column: its maximum (None if unknown), and how it writes numbers.

    `comma` asks for decimal commas, `scaled` for marks that are converted to the maximum. A scale
    is `closed` if the platform ignores marks below 0 and above the maximum.
    """

    maximum: Decimal | None = None
    comma: bool = False
    scaled: bool = False
    closed: bool = False
    where: str = "the gradebook"

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
        maxima = {_rounded(Decimal(str(mark.max_points))) for mark in marks}
        if not self._has_room_above(maxima, marks):
            self._check_maxima(maxima)
        if self.closed and self.maximum is not None:
            self._check_range(self.maximum, marks)

    def _has_room_above(self, maxima: set[Decimal], marks: Sequence[StudentMark]) -> bool:
        """Return whether the maximum was raised for marks above ours, as with extra credit."""
        if not self.closed or self.scaled or self.maximum is None:
            return False
        above = any(mark.points > mark.max_points for mark in marks)
        return above and all(maximum < self.maximum for maximum in maxima)

    def _check_maxima(self, maxima: set[Decimal]) -> None:
        ours = " or ".join(format_number(maximum) for maximum in sorted(maxima))
        theirs = "none" if self.maximum is None else format_number(self.maximum)
        if self.scaled and (not self.maximum or not all(maxima)):
            raise RequestError(
                f"the marks cannot be scaled: the maximum of {self.where} is {theirs}, "
                f"ours is {ours}",
                "leave out --scale",
            )
        if not self.scaled and self.maximum is not None and maxima - {self.maximum}:
            raise RequestError(
                f"{self.where} is out of {theirs} points, the marks are out of {ours}",
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


@dataclass(frozen=True)
class Column:
    """A column to fill in; a new one, after all others, has no `index`.

    `text` makes a cell of a mark, `check` raises `RequestError` if it cannot. A cell that `keeps`
    stays as it is. `above` are cells of a new column in rows that are no student's.
    """

    name: str
    index: int | None
    text: Callable[[StudentMark], str]
    check: Callable[[Sequence[StudentMark]], None] = lambda marks: None
    keeps: Callable[[str], bool] = lambda cell: False
    above: Mapping[CsvRecord, str] = field(default_factory=dict)
    is_comment: bool = False


def mark_column(
    table: Table, index: int, scale: Scale, keeps: Callable[[str], bool] = lambda cell: False
) -> Column:
    """Return the column of the whole marks."""
    return Column(table.columns[index], index, scale.text, scale.check, keeps)


def exercise_column(
    name: str,
    index: int | None,
    exercise: str,
    scale: Scale,
    keeps: Callable[[str], bool] = lambda cell: False,
    above: Mapping[CsvRecord, str] | None = None,
) -> Column:
    """Return the column of the points of one exercise."""
    return Column(
        name,
        index,
        lambda mark: scale.text(mark.of(exercise)),
        lambda marks: scale.check([mark.of(exercise) for mark in marks]),
        keeps,
        above or {},
    )


def fill_columns(
    table: Table,
    columns: Sequence[Column],
    rows: Sequence[GradebookRow],
    marks: Sequence[StudentMark],
    skip_unmatched: bool = False,
) -> Filled:
    """Write each mark into the row of its student.

    Raises `RequestError` if a mark has no row of its own, unless such marks are skipped, or if it
    does not fit a column. Then nothing is written.
    """
    if not rows:
        raise RequestError("the gradebook has no students", "download it again")
    matches = match_rows(marks, rows)
    if not skip_unmatched:
        matches.require_all()
    filling = _Filling(table, rows, matches.found)
    for column in columns:
        filling.add(column)
    unmarked = (row for index, row in enumerate(rows) if index not in matches.found)
    return Filled(
        filling.data(),
        ", ".join(column.name for column in columns if not column.is_comment),
        len(filling.written),
        tuple(row.name for row in unmarked if row.is_student),
        filling.names(filling.excused),
        filling.names(filling.commented),
        matches.without_row,
        matches.guessed,
    )


class _Filling:
    """The cells that are filled in, column by column; rows are counted by their index."""

    def __init__(
        self, table: Table, rows: Sequence[GradebookRow], found: Mapping[int, StudentMark]
    ) -> None:
        self._table, self._rows, self._found = table, rows, found
        self._cells: dict[Field, str] = {}
        self._more: dict[CsvRecord, list[str]] = defaultdict(list)
        self.written: set[int] = set()
        self.excused: set[int] = set()
        self.commented: set[int] = set()

    def add(self, column: Column) -> None:
        """Fill in a column."""
        column.check(list(self._found.values()))
        if column.index is None:
            self._append(column)
            return
        for index, mark in self._found.items():
            row = self._rows[index]
            place = _field(self._table, row, column.index)
            if column.keeps(self._table.text(place).strip()):
                (self.commented if column.is_comment else self.excused).add(index)
            else:
                self._cells[place] = column.text(mark)
                self.written |= set() if column.is_comment else {index}

    def _append(self, column: Column) -> None:
        texts = {self._rows[i].record: column.text(mark) for i, mark in self._found.items()}
        texts |= {self._table.header: column.name, **column.above}
        for record in (self._table.header, *self._table.records):
            self._more[record].append(texts.get(record, ""))
        self.written |= self._found.keys()

    def data(self) -> bytes:
        """Return the filled gradebook."""
        return self._table.filled(self._cells, self._more)

    def names(self, indexes: Iterable[int]) -> tuple[str, ...]:
        """Return the names in some rows, in the order of the gradebook."""
        return tuple(self._rows[index].name for index in sorted(indexes))


def exercises_of(marks: Iterable[StudentMark]) -> list[ExercisePoints]:
    """Return an example of each exercise in the marks, in order."""
    return list({each.name: each for mark in marks for each in mark.exercises}.values())


def find_exercise(columns: Mapping[int, str], exercise: ExercisePoints) -> int | None:
    """Return the column that is called after an exercise; None if there is no such column.

    Raises `RequestError` if there are several.
    """
    wanted = {exercise.name.casefold(), exercise.title.strip().casefold()}
    found = {
        index: name
        for index, name in columns.items()
        if wanted & {text.casefold() for text in (name, *_title_and_number(name)[:1])}
    }
    if len(found) > 1:
        raise RequestError(
            f"{len(found)} columns are called after {exercise.name}: {list_columns(found)}",
            "rename all but one of them on the platform, and download it again",
        )
    return next(iter(found), None)


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


def _field(table: Table, row: GradebookRow, column: int) -> Field:
    """Return the field of a row in a column; raise `RequestError` if the row ends before it."""
    if column >= len(row.record):
        raise RequestError(
            f"line {row.line} of the gradebook ends before the column {table.columns[column]!r}",
            "download it again",
        )
    return row.record[column]


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
