"""`grader regrade`: grade a class again, and show who changes before anything is published."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from grader.classroom.late_budget import free_days_used, store_used
from grader.classroom.publishing import Publisher
from grader.classroom.run import Run
from grader.classroom.standings import Standings
from grader.classroom.stored.history import HistoryRow
from grader.classroom.stored.marks import kept_mark
from grader.commands.changes import MarkChange, mark_changes, summary_lines
from grader.commands.graded import (
    CLUSTER,
    GRADED,
    JOBS,
    SECRET,
    confirmed,
    echo_review,
    engine_for,
    graded_class,
    known_student,
)
from grader.commands.options import COURSE, SEED, isolation_option, short_path
from grader.commands.progress import ProgressDisplay
from grader.course.course import Course
from grader.errors import CourseError, RequestError
from grader.sandbox.confinement.limits import Isolation

KEEPS = "a regrade takes no points away"  # students read it


@click.command()
@GRADED
@click.option("--publish", is_flag=True, help="Write the reports and marks without asking.")
@click.option(
    "--again",
    multiple=True,
    metavar="STUDENT",
    help="Grade this student again although nothing has changed. May be repeated.",
)
@click.option(
    "--only-up",
    is_flag=True,
    help="Publish what rises; list whose marks would fall, and let them keep what is published.",
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
    only_up: bool,
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
    grader regrade --in results/ --only-up   and let nobody fall

    Only changed exercises are graded again. Adjustments and waivers stay. Nothing is published
    before you have seen the changes. A mark that --only-up has kept stays until a new `grader
    adjust --final` of it, such as 0, or until other files count.
    """
    with graded_class(course, folder, seed) as graded, contextlib.ExitStack() as stack:
        standings = replace(graded, free_days=free_days_used(graded.ledger, folder))
        students = [known_student(standings, name) for name in again]
        engine = engine_for(standings.course, isolation, jobs, cluster)
        stack.callback(engine.close)
        stack.callback(standings.ledger.rollback_trial)  # undone unless it is published
        for student in students:
            standings.ledger.begin_trial(student)
        display = ProgressDisplay(None, None, None, named=standings.ledger.named)
        with display.shown(), contextlib.closing(Run(standings).grade(engine)) as events:
            for event in events:
                display.show(event)
        _refuse_uneven(standings)
        changes = list(mark_changes(standings))
        falling = [change for change in changes if only_up and change.falls]
        for line in summary_lines([change for change in changes if change not in falling]):
            click.echo(f"  {line}")
        for line in _kept_lines(falling):
            click.echo(f"  {line}")
        if not (publish or confirmed("Publish this?", otherwise=only_up)):
            click.echo("\n  nothing is published: grader regrade --publish does")
            return echo_review(standings.ledger)
        _publish(standings, folder, falling)
        click.echo(f"\n  published: {short_path(folder)}")
        return echo_review(standings.ledger)


def _refuse_uneven(standings: Standings) -> None:
    """Raise `CourseError` if the points do not add up, because marks would have a wrong maximum."""
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


def _kept_lines(falling: Sequence[MarkChange]) -> Iterator[str]:
    """Yield the marks that would fall; raise `RequestError` if they cannot be compared."""
    if falling:
        yield f"would fall, and keep what is published, {len(falling)}:"
    for change in falling:
        if change.of != change.of_before:
            says = f"the maximum changes from {change.of_before:g} to {change.of:g}"
            raise RequestError(f"{says}, so --only-up cannot tell whose marks fall", "--publish")
        yield f"{change.who}  {change.before:g} of {change.of:g}, not {change.after:g}"


def _keep(standings: Standings, change: MarkChange) -> None:
    """Let the mark of the submission that counts not fall below what is published."""
    standing, ledger = standings.standing(change.student), standings.ledger
    assert standing is not None, "its change was computed from it"
    assert change.before is not None, "only a published mark falls"
    kept = kept_mark(standing.report.hashes["submission"])
    ledger.adjust(change.student, kept, change.before, KEEPS)
    said = f"the mark stays at {change.before:g}, not {change.after:g}: {KEEPS}"
    ledger.remember(HistoryRow("adjustment", said, change.student))


def _publish(standings: Standings, out: Path, falling: Sequence[MarkChange]) -> None:
    publisher = Publisher(standings, out, "regraded")
    if not standings.is_as_published:
        why = f"regraded after a change of {standings.changed_rules}"
        standings.ledger.remember(HistoryRow("rules", why))
    for change in falling:
        _keep(standings, change)
    standings.ledger.commit_trial()
    standings.ledger.put(SECRET, standings.secret.hex())
    store_used(standings.ledger, standings.free_days_used)
    for student in standings.ledger.students():
        publisher.publish(student)
    publisher.finish()
