"""`grader adjust`: add points to a student's exercise, or take some away."""

from __future__ import annotations

from pathlib import Path

import click

from grader.classroom.publishing import Publisher
from grader.classroom.stored.marks import MAX_ADJUSTMENT
from grader.commands.graded import GRADED, echo_review, graded_class, known_student, verdict_line
from grader.commands.options import COURSE
from grader.course.course import Course
from grader.errors import RequestError


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("student")
@click.argument("exercise")
@click.argument("points", type=float, metavar="±POINTS")
@click.option("--why", required=True, metavar="TEXT", help="The reason, which the student reads.")
@GRADED
@COURSE
def adjust(
    student: str, exercise: str, points: float, why: str, folder: Path, course: Course
) -> int:
    """Add points to a student's exercise, or take some away.

    \b
    grader adjust s004 layer_norm +2 --why "right idea, one sign" --in results/
    grader adjust s004 layer_norm 0 --why "taken back" --in results/

    The points are added to what the tests give, now and after every regrade, and are
    shown in the student's report. A new adjustment of the same exercise replaces the
    old one.
    """
    if not abs(points) <= MAX_ADJUSTMENT:  # nor is NaN
        raise RequestError(f"{points} is not a number of points", "such as +2, -1.5 or 0")
    with graded_class(course, folder) as standings:
        known_student(standings, student)
        standings.ledger.adjust(student, standings.course[exercise].name, points, why)
        publisher = Publisher(standings, folder)
        report = publisher.publish(student) if standings.is_as_published else None
        if report is None:
            click.echo("  kept, but not published: grader regrade shows what else has changed")
        else:
            publisher.finish()
            click.echo(verdict_line(report))
        return echo_review(standings.ledger)
