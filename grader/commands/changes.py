"""Whose published marks change, and by how much, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from grader.classroom.standings import Standings
from grader.classroom.stored.marks import PublishedMark


@dataclass(frozen=True)
class MarkChange:
    """A student's mark before and after; `exercises` has the change of each exercise.

    `before` is None if no mark was published yet; `of` is the maximum.
    """

    student: str
    before: float | None
    of_before: float | None
    after: float
    of: float
    exercises: tuple[tuple[str, float], ...] = ()
    who: str = ""  # the student, with the name beside the id

    @property
    def is_none(self) -> bool:
        """Whether the student's points stay what they were."""
        same = (self.before, self.of_before) == (self.after, self.of)
        return same and not self.exercises

    @property
    def falls(self) -> bool:
        """Whether the student's mark gets worse."""
        return self.before is not None and self.after < self.before


def mark_changes(
    standings: Standings, earlier: Callable[[str], PublishedMark | None] | None = None
) -> Iterator[MarkChange]:
    """Compare every student's mark with an `earlier` one, by default with the published one."""
    earlier = earlier or standings.ledger.published
    for standing in standings.graded():
        student = standing.report.submission
        now, before = standing.published(standings.rules), earlier(student)
        who = standing.report.who
        if before is None:
            yield MarkChange(student, None, None, now.points, now.max_points, who=who)
            continue
        yield MarkChange(
            *(student, before.points, before.max_points, now.points, now.max_points),
            tuple(now.moved_from(before)),
            who,
        )


def summary_lines(changes: Sequence[MarkChange]) -> Iterator[str]:
    """Yield the changes in words, a line for each student, and the number of unchanged marks."""
    width = max((len(change.who or change.student) for change in changes), default=0)
    changed = [change for change in changes if not change.is_none]
    for change in changed:
        before = "new" if change.before is None else f"{change.before:g}"
        by = ", ".join(f"{name} {points:+g}" for name, points in change.exercises)
        marks = f"{before:>6} → {change.after:<6g} of {change.of:g}"
        if change.of_before not in (None, change.of):
            marks += f", not {change.of_before:g}"
        yield f"{change.who or change.student:<{width}}  {marks}  {by}".rstrip()
    yield f"{len(changed)} change, {len(changes) - len(changed)} stay as they were"
