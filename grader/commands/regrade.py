"""`grader regrade`: grade a class again, and show who changes before anything is published."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from grader.classroom.publishing import Publisher
from grader.classroom.run import Run
from grader.classroom.standings import Standings
from grader.classroom.stored.history import HistoryRow
from grader.commands.graded import (
    CLUSTER,
    GRADED,
    JOBS,
    SECRET,
    echo_review,
    engine_for,
    graded_class,
    known_student,
)
from grader.commands.options import COURSE, SEED, isolation_option, short_path
from grader.commands.progress import ProgressDisplay
from grader.course.course import Course
from grader.errors import CourseError
from grader.sandbox.confinement.layers import Isolation


@click.command()
@GRADED
@click.option("--publish", is_flag=True, help="Write the reports and marks without asking.")
@click.option(
    "--again",
    multiple=True,
    metavar="STUDENT",
    help="Grade this student again although nothing has changed. May be repeated.",
)
@JOBS
@CLUSTER
@SEED
@isolation_option("confined")
@COURSE
def regrade(
    folder: Path,
    publish: bool,
    again: tuple[str, ...],
    jobs: int | None,
    cluster: str | None,
    seed: int | None,
    isolation: Isolation,
    course: Course,
) -> int:
    """Grade a class again after a change of the course.

    \b
    grader regrade --in results/             who changes, and by how much
    grader regrade --in results/ --publish   and write the reports

    Only exercises that have changed are run again. Adjustments stay. Nothing is
    published before you have seen what changes.
    """
    with graded_class(course, folder, seed) as standings, contextlib.ExitStack() as stack:
        students = [known_student(standings, name) for name in again]
        engine = engine_for(standings.course, isolation, jobs, cluster)
        stack.callback(engine.close)
        stack.callback(standings.ledger.rollback_trial)  # unless it is published
        for student in students:
            standings.ledger.begin_trial(student)
        display = ProgressDisplay(None, None, None, named=standings.ledger.named)
        with display.shown(), contextlib.closing(Run(standings).grade(engine)) as events:
            for event in events:
                display.show(event)
        _refuse_uneven(standings)
        for line in summary_lines(list(mark_changes(standings))):
            click.echo(f"  {line}")
        if not publish and (not sys.stdin.isatty() or not click.confirm("\n  Publish this?")):
            click.echo("\n  nothing is published: grader regrade --publish does")
            return echo_review(standings.ledger)
        _publish(standings, folder)
        click.echo(f"\n  published: {short_path(folder)}")
        return echo_review(standings.ledger)


def _refuse_uneven(standings: Standings) -> None:
    """Raise `CourseError` if the points do not add up: marks would be out of a wrong maximum."""
    course = standings.course
    problems = [course.uneven_points] if course.uneven_points else []
    for standing in itertools.islice(standings.graded(), 1):
        problems += [
            f"reference/{result.name}: its tests are worth {result.max_points} points, "
            f"exercise.toml says {course[result.name].points}"
            for result in standing.report.exercises
            if result.tests and result.max_points != course[result.name].points
        ]
    if problems:
        raise CourseError("; ".join(problems), "grader validate   checks the whole course")


@dataclass(frozen=True)
class MarkChange:
    """A student's mark before and after; `exercises` has by how much each of them changes.

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


def mark_changes(standings: Standings) -> Iterator[MarkChange]:
    """Compare every student's mark with the one that was published."""
    for standing in standings.graded():
        student = standing.report.submission
        now, before = standing.published(standings.rules), standings.ledger.published(student)
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
    """Yield the changes in words, a line a student, and how many marks stay as they were."""
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


def _publish(standings: Standings, out: Path) -> None:
    publisher = Publisher(standings, out, "regraded")
    if not standings.is_as_published:
        why = "regraded under other rules, or by another version of the grader"
        standings.ledger.remember(HistoryRow("rules", why))
    standings.ledger.commit_trial()
    standings.ledger.put(SECRET, standings.secret.hex())
    for student in standings.ledger.students():
        publisher.publish(student)
    publisher.finish()
