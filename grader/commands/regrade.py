"""Grading a class again after a change: who changes, and by how much, before anybody is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.run import Engine, Run, Told
from grader.classroom.standings import Classbook
from grader.classroom.publishing import Publisher


@dataclass(frozen=True)
class Change:
    """A student's mark before and after; `exercises` has by how much each of them changes.

    `before` is None for whoever was not told of a mark yet; `of` are the most points there are.
    """

    student: str
    before: float | None
    of_before: float | None
    after: float
    of: float
    exercises: tuple[tuple[str, float], ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether the student's points stay what they were."""
        same = (self.before, self.of_before) == (self.after, self.of)
        return same and not self.exercises


def regrade(book: Classbook, engine: Engine, told: Told) -> list[Change]:
    """Grade what is stale, and compare everybody's mark with what they were told."""
    Run(book, told).grade(engine)
    return list(_changes(book))


def _changes(book: Classbook) -> Iterator[Change]:
    for standing in book.standings():
        student = standing.report.submission
        now, before = standing.published(book.rules), book.ledger.published(student)
        if before is None:
            yield Change(student, None, None, now.points, now.max_points)
            continue
        moved = (
            (name, round(points - before.exercises.get(name, 0.0), 2))
            for name, points in now.exercises.items()
        )
        yield Change(
            *(student, before.points, before.max_points, now.points, now.max_points),
            tuple((name, by) for name, by in moved if by),
        )


def told(changes: Sequence[Change]) -> Iterator[str]:
    """The changes in words, a line a student, and how many stay as they were."""
    width = max((len(change.student) for change in changes), default=0)
    changed = [change for change in changes if not change.is_none]
    for change in changed:
        before = "new" if change.before is None else f"{change.before:g}"
        by = ", ".join(f"{name} {points:+g}" for name, points in change.exercises)
        marks = f"{before:>6} → {change.after:<6g} of {change.of:g}"
        if change.of_before not in (None, change.of):
            marks += f", not {change.of_before:g}"
        yield f"{change.student:<{width}}  {marks}  {by}".rstrip()
    yield f"{len(changed)} change, {len(changes) - len(changed)} stay as they were"


def publish(book: Classbook, out: Path) -> None:
    """Tell everybody."""
    publisher = Publisher(book, out)
    book.ledger.settle()
    book.ledger.put("seed", book.seed)
    for student in book.ledger.students():
        publisher.publish(student)
    publisher.finish()
