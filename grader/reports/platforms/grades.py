"""Marks as CSV, of a class or a term: a spreadsheet finds texts and numbers, but no formulas."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from grader.report import Person, Report
from grader.reports.figures import amount
from grader.reports.summary import TermSummary

BOM = "\ufeff"  # without it, Excel reads names in the code page of its own machine
MISSING = "missing"  # the state of a student who handed in nothing
FORMULA = tuple("=+-@＝＋－＠'")  # with the apostrophe, so that ours can be told from the text's
BLANK = ' "\u00a0\u200b\u200c\u200d\u2060\ufeff'  # a spreadsheet may drop these at the start
SEPARATORS = ",;|\t\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # each may end a cell or a row
CELL_START = rf"(?:\A|[{SEPARATORS}])[{SEPARATORS}{BLANK}\s\0]*+"
_CELL_START = re.compile(CELL_START)
COLUMNS: dict[str, Callable[[Report], str]] = {  # the columns before the exercises
    "submission": lambda report: cell(report.submission),
    "points": lambda report: amount(report.counted),
    "max_points": lambda report: amount(report.max_counted),
    "name": lambda report: cell(report.person.name),
    "section": lambda report: cell(report.person.section),
    "email": lambda report: cell(report.person.email),
    "login": lambda report: cell(report.person.login),
    "number": lambda report: cell(report.person.number),
    "earned": lambda report: amount(report.mark.earned if report.mark else report.points),
    "late_days": lambda report: amount(report.mark.late_days if report.mark else 0),
    "attempt": lambda report: str(report.attempt),
    "submitted": lambda report: cell(report.submitted),
    "flags": lambda report: cell("; ".join(report.flags)),
    "state": lambda report: report.state,
}


@dataclass(frozen=True)
class NothingHandedIn:
    """A student of the roster who handed in nothing; `points` is None if that gives no mark.

    `flags` say why that may be wrong.
    """

    submission: str  # the student's id, as in a report
    person: Person
    points: float | None
    max_points: float
    flags: tuple[str, ...] = ()

    def cells(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the cells of this student's line."""
        points = "" if self.points is None else amount(self.points)
        known = {
            "submission": cell(self.submission),
            "points": points,
            "max_points": amount(self.max_points),
            "name": cell(self.person.name),
            "section": cell(self.person.section),
            "email": cell(self.person.email),
            "login": cell(self.person.login),
            "number": cell(self.person.number),
            "earned": points,
            "flags": cell("; ".join(self.flags)),
            "state": MISSING,
        }
        yield from (known.get(column, "") for column in COLUMNS)
        yield from (points for _ in names)


def write_csv(
    stream: TextIO, names: Sequence[str], lines: Iterable[Report | NothingHandedIn]
) -> None:
    """Write one line per student: the mark, the student, and the points of each exercise.

    `names` are the exercises. Their points include adjustments; the cell of an exercise that was
    not graded is empty. Lines are read one by one. Open the file of `stream` with `newline=""`.
    """
    stream.write(BOM)
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([*COLUMNS, *map(cell, names)])
    for line in lines:
        writer.writerow(
            line.cells(names) if isinstance(line, NothingHandedIn) else _cells(line, names)
        )


def _cells(report: Report, names: Sequence[str]) -> Iterator[str]:
    points = {result.name: amount(result.counted) for result in report.exercises}
    yield from (column(report) for column in COLUMNS.values())
    yield from (points.get(name, "") for name in names)


def write_term(stream: TextIO, term: TermSummary) -> None:
    """Write one line per student of a term, with a column for each assignment."""
    stream.write(BOM)
    writer = csv.writer(stream, lineterminator="\r\n")
    names = [cell(assignment.name) for assignment in term.exercises]
    first, last = ("student", "name", "section", "email"), ("points", "max_points")
    days = ("late_days", "free_days", "free_days_left")
    writer.writerow([*first, *names, *last, *days, "falls_behind", "comes_back"])
    for at, row in enumerate(term.students):
        repeated = [each.fault for each in term.mistakes if at in each.who]
        writer.writerow(
            [
                *map(cell, (row.id, row.name, row.section, row.email)),
                *map(_amount, (*row.points_of, row.points, row.max_points)),
                *map(_amount, (row.late_days, row.free_days, row.free_left)),
                *map(cell, ("; ".join(row.flags), "; ".join(repeated))),
            ]
        )


def _amount(points: float | None) -> str:
    return "" if points is None else amount(points)


def cell(text: str) -> str:
    """Return a text with an apostrophe before whatever a spreadsheet would read as a formula.

    A spreadsheet with another separator splits a cell in two, and one that ignores quotes ends it
    at a line break. So every place where a cell may start counts.
    """

    def started(start: re.Match[str]) -> str:
        return f"{start[0]}'" if text.startswith(FORMULA, start.end()) else start[0]

    return _CELL_START.sub(started, text)
