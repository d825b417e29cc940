"""The history of a class: every published change, with its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import ClassVar, Literal, get_args

from grader.classroom.stored.rows import Check, Rows, now

What = Literal["mark", "gone", "adjustment", "roster", "rules", "replaced"]


@dataclass(frozen=True)
class HistoryRow:
    """One change: of a student's mark, or of the whole class if `student` is empty.

    `points` of `max_points` is the mark from then on; `hash` is of the submission that counts.
    """

    what: What
    why: str
    student: str = ""
    hash: str = ""
    points: float = 0.0
    max_points: float = 0.0
    at: str = ""  # set when it is stored


class History(Rows):
    """The history of a class, in which no entry is ever changed."""

    CHECKS: ClassVar[Mapping[str, Check]] = {
        "history": lambda row: row[0] in get_args(What) and all(map(math.isfinite, row[4:6])),
    }

    def remember(self, *rows: HistoryRow) -> None:
        """Add changes to the history, with the current time."""
        self._put("history", *([*astuple(row)[:-1], now()] for row in rows))

    def history(self, student: str = "") -> list[HistoryRow]:
        """Return the changes of a student's mark and of the class, or all of them, in order."""
        condition = "WHERE about IN (?, '') ORDER BY id" if student else "ORDER BY id"
        values = [student] if student else []
        return [HistoryRow(*row) for row in self._rows("history", condition, *values)]

    def last_mark(self, student: str) -> HistoryRow | None:
        """Return the last recorded change of a student's mark, if there is one."""
        condition = "WHERE about = ? AND what = 'mark' ORDER BY id DESC LIMIT 1"
        rows = self._rows("history", condition, student)
        return HistoryRow(*rows[0]) if rows else None
