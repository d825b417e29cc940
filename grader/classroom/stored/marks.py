"""The marks of a class: adjustments and published marks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from grader.classroom.stored.rows import PRESENT, Check, Rows, decoded, now
from grader.report import Adjustment

FINAL = "(final)"  # in place of an exercise: the mark itself; no exercise can have this name
KEPT = "(kept)"  # before the hash of a submission whose mark a regrade must not lower
COMMENT = "(comment) "  # before a place in a student's code; worth no points
MAX_ADJUSTMENT = 1e6  # points; so sums stay far from infinity


def kept_mark(digest: str) -> str:
    """Return what stands in place of an exercise if the mark of a submission must not fall."""
    return f"{KEPT} {digest}"


@dataclass(frozen=True)
class PublishedMark:
    """A student's published mark and the rules behind it; `exercises` has the points of each.

    `pages` are the size and hash of each file that was written for it.
    """

    fingerprint: str
    rules: str
    seed: int
    points: float
    max_points: float
    exercises: Mapping[str, float]
    pages: Mapping[str, list[int | str]] = field(default_factory=dict)

    def moved_from(self, before: PublishedMark | None) -> list[tuple[str, float]]:
        """Return the exercises whose points have changed, with the difference."""
        was = before.exercises if before else {}
        moved = [(n, round(now - was.get(n, 0.0), 2)) for n, now in self.exercises.items()]
        return [(name, by) for name, by in moved if by]


def _is_mark(row: Sequence[Any]) -> bool:
    *_, points, max_points, exercises, pages = row
    decoded(pages, dict[str, tuple[int, str]])
    counted = decoded(exercises, dict[str, float]).values()
    return all(math.isfinite(number) for number in (points, max_points, *counted))


class ClassMarks(Rows):
    """The adjustments of a class and its published marks."""

    CHECKS: ClassVar[Mapping[str, Check]] = {
        "adjustments": lambda row: abs(row[2]) <= MAX_ADJUSTMENT,
        "published": _is_mark,
    }

    def adjust(self, student: str, exercise: str, points: float, why: str) -> None:
        """Adjust a student's points for an exercise; this replaces an earlier adjustment of it."""
        with self.writing():
            self._put("adjustments", [student, exercise, float(points), why, now()])
            self._repaired("adjustments", student=student, exercise=exercise)

    def adjustments(self, student: str) -> dict[str, Adjustment]:
        """Return a student's adjustments that count, by exercise.

        The last one stored counts, whatever its time. One of the mark also replaces what the mark
        was kept at before.
        """
        latest: dict[str, Adjustment] = {}
        rows = self._rows("adjustments", "WHERE student = ? ORDER BY id", student)
        for _, exercise, points, why, _ in rows:
            if exercise == FINAL:
                latest = {key: each for key, each in latest.items() if not key.startswith(KEPT)}
            latest[exercise] = Adjustment(points, why)
        return {name: adjustment for name, adjustment in latest.items() if adjustment.points}

    def comment(self, student: str, place: str, text: str) -> None:
        """Store a comment on a place in a student's code; this replaces an earlier one there."""
        self.adjust(student, f"{COMMENT}{place}", 0.0, text)

    def comments(self, student: str) -> dict[str, str]:
        """Return the comments on a student's code, by place; an empty one was taken back."""
        condition = "WHERE student = ? AND substr(exercise, 1, ?) = ? ORDER BY id"
        rows = self._rows("adjustments", condition, student, len(COMMENT), COMMENT)
        last = {place.removeprefix(COMMENT): text for _, place, _, text, _ in rows}
        return {place: text for place, text in last.items() if text}

    def publish(self, marks: Mapping[str, PublishedMark]) -> None:
        """Store the marks that are published, by student."""
        rows = []
        for student, mark in marks.items():
            points = float(mark.points), float(mark.max_points)
            kept = json.dumps(dict(mark.exercises)), json.dumps(dict(mark.pages))
            rows.append([student, mark.fingerprint, mark.rules, mark.seed, *points, *kept, now()])
        with self.writing():
            self._put("published", *rows)
            for student in marks:
                self._repaired("published", student=student)

    def published(self, student: str) -> PublishedMark | None:
        """Return the mark last published for a student, or None."""
        rows = self._rows("published", "WHERE student = ?", student)
        if not rows:
            return None
        _, mark, rules, seed, points, max_points, exercises, pages = rows[0]
        counted, written = json.loads(exercises), json.loads(pages)
        return PublishedMark(mark, rules, seed, points, max_points, counted, written)

    def published_at(self, student: str) -> datetime | None:
        """Return when a student's mark was last published; None if unknown."""
        query = "SELECT at FROM published WHERE student = ?"
        for (at,) in self._db.execute(query, [student]):
            with suppress(ValueError):  # the time, which no checksum covers
                return datetime.fromisoformat(at).astimezone(UTC)
        return None

    def published_under(self) -> list[tuple[str, int]]:
        """Return the rules (a hash) and the seeds under which marks were published here."""
        return self._db.execute(f"SELECT DISTINCT rules, seed FROM published {PRESENT}").fetchall()

    def published_students(self) -> list[str]:
        """Return the students who have a published mark and have handed in."""
        query = f"SELECT student FROM published {PRESENT} ORDER BY student"
        return [student for (student,) in self._db.execute(query)]

    def gone(self) -> list[str]:
        """Return the students with a published mark whose attempts all count as gone."""
        query = (
            "SELECT student FROM published JOIN attempts USING (student) "
            "GROUP BY student HAVING NOT max(present) ORDER BY student"
        )
        return [student for (student,) in self._db.execute(query)]

    def withdraw(self, student: str) -> None:
        """Forget a student's published mark."""
        self._db.execute("DELETE FROM published WHERE student = ?", [student])

    def vanished(self) -> list[str]:
        """Return the students with a published mark but no stored attempt."""
        query = "SELECT student FROM published EXCEPT SELECT student FROM attempts"
        return [student for (student,) in self._db.execute(query)]
