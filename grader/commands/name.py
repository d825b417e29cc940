"""`grader name`: describe a mistake that the class made and the course does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from grader.classroom.mistakes import UnnamedGroups
from grader.classroom.publishing import Publisher
from grader.classroom.standings import Standings
from grader.commands.changes import mark_changes, summary_lines
from grader.commands.graded import (
    GRADED,
    confirmed,
    count_students,
    echo_review,
    graded_class,
)
from grader.commands.options import OWN_COURSE
from grader.course.course import Course, Exercise
from grader.course.named import Named, load_named, save_named
from grader.errors import RequestError, did_you_mean
from grader.grading.naming import GroupMember, confirmed_by
from grader.report import MAX_MESSAGE, clean


@click.command()
@click.argument("group")
@click.option("--says", required=True, metavar="TEXT", help="What is wrong, in a sentence.")
@click.option("--hint", default="", metavar="TEXT", help="What to think about, for the student.")
@click.option(
    "--costs",
    type=click.IntRange(min=0),
    metavar="N",
    help="Its price in points. Default: a third of the exercise.",
)
@click.option("--yes", is_flag=True, help="Store it without asking.")
@GRADED
@OWN_COURSE
def name(
    group: str, says: str, hint: str, costs: int | None, yes: bool, folder: Path, course: Course
) -> int:
    """Name a mistake that the class made and the course does not know.

    \b
    grader name masked_softmax-1f3a2b --in results/ \\
        --says "Length 0 is taken as 1." --hint "Which keys are valid for length 0?"

    The class page lists the groups. From then on, every report of the group names the mistake, and
    so does every later report of this course: nothing is graded again. Naming a group again
    replaces the text. One member's code is stored, without comments, for comparison with other
    classes.
    """
    with graded_class(course, folder) as standings:
        exercise, named = _found(standings, group)
        named = msgspec.structs.replace(named, says=_text(says), hint=_text(hint), costs=costs)
        if not named.says:
            raise RequestError("--says is empty", "say in a sentence what is wrong")
        if costs is not None and costs > exercise.points:
            raise RequestError(f"{exercise.name} is worth {exercise.points} points, not {costs}")
        before = load_named(exercise)
        others = [each for each in before if each.id != named.id]
        path = save_named(exercise, [*others, named])
        fresh = replace(standings)  # so that the names are read again
        for line in summary_lines(list(mark_changes(fresh))):
            click.echo(f"  {line}")
        if not (yes or confirmed("Keep this?", otherwise=True)):
            save_named(exercise, before)
            click.echo("\n  nothing was named")
            return 0
        click.echo(f"  {named.id} is named in {path}")
        _publish(fresh, folder, named)
        return echo_review(standings.ledger)


def _text(text: str) -> str:
    return clean(" ".join(text.split()))[:MAX_MESSAGE]


def _found(standings: Standings, group: str) -> tuple[Exercise, Named]:
    """Return the exercise of a group, and the group as a mistake, which may have a name already.

    Raise `RequestError` if there is no such group.
    """
    course, groups, members = standings.course, UnnamedGroups(standings.named), []
    nameless = UnnamedGroups()  # one that looks like it, if that was named without a program
    alike: dict[str, list[GroupMember]] = {}
    for report, files in standings.everybody():
        with standings.ledger.review.errors_of(report.submission):
            for result in report.exercises:
                diagnosis = result.diagnosis
                if diagnosis is None or not diagnosis.signature:
                    continue
                signed = result.name, diagnosis.signature, diagnosis.secret
                member = GroupMember(result, files.get(result.name, ""))
                if diagnosis.faults == (group,):
                    alike.setdefault(nameless.group(*signed), []).append(member)
                elif not diagnosis.faults and groups.group(*signed) == group:
                    members.append(member)
    if group in groups.signatures:
        exercise, signature = groups.signatures[group]
        return course[exercise], confirmed_by(Named(group, signature, ""), members)
    named = {
        each.id: (exercise, each) for exercise in course.exercises for each in load_named(exercise)
    }
    if group in named:
        exercise_of, each = named[group]
        most = max(alike.values(), key=len, default=[])
        return exercise_of, each if each.program else confirmed_by(each, most)
    known: Sequence[str] = [*groups.signatures, *named]
    problem = f"there is no group `{group}` in this class{did_you_mean(group, known)}"
    raise RequestError(problem, "the class page, index.html, lists the groups under All mistakes")


def _publish(standings: Standings, folder: Path, named: Named) -> None:
    """Write the reports that name it now, and print their number."""
    if not standings.is_as_published:
        click.echo("  kept, but not published: grader regrade shows what else has changed")
        return
    publisher, ledger = Publisher(standings, folder, f"{named.id} was named"), standings.ledger
    made = changed = 0
    for student in ledger.students():
        before = ledger.published(student)
        if report := publisher.publish(student):
            made += any(r.diagnosis and named.id in r.diagnosis.faults for r in report.exercises)
            changed += before is not None and before.points != report.counted
    publisher.finish()
    marks = "1 mark changes" if changed == 1 else f"{changed} marks change"
    click.echo(f"  {count_students(made)} made it; {marks}")
