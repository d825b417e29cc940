"""Commands for a class that was graded: regrade, adjust, merge, export."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grader.cli.classes import CLUSTER, JOBS, code_of, engine_for, students, verdict
from grader.cli.options import COURSE, SEED, isolation_from, short

if TYPE_CHECKING:
    from grader.classroom.standings import Classbook

EXPORTS = ("canvas", "moodle", "gradescope", "csv", "junit", "classroom50")
GRADED = click.option(
    "--in",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    metavar="DIR",
    help="The folder that `grader batch` wrote. Default: this one.",
)


@contextlib.contextmanager
def graded_class(folder: Path, course: Path | None, seed: int | None = None) -> Iterator[Classbook]:
    """The class that was graded into a folder, under its seed or another."""
    from grader.course.course import find_course
    from grader.classroom.standings import Classbook
    from grader.errors import RequestError
    from grader.classroom.ledger import existing, opened

    found = find_course(course or Path.cwd())
    with opened(existing(folder)) as ledger:
        kept = ledger.get("seed") if seed is None else seed
        if kept is None:
            raise RequestError(
                f"no run over the class in {folder} got as far as grading",
                f"grader batch SUBMISSIONS --out {folder}",
            )
        yield Classbook(found, ledger, kept)


@click.command()
@GRADED
@click.option("--publish", is_flag=True, help="Write the reports and marks without asking.")
@click.option(
    "--again",
    multiple=True,
    metavar="STUDENT",
    help="Grade this student anew, though nothing has changed. May be repeated.",
)
@JOBS
@CLUSTER
@SEED
@isolation_from("confined")
@COURSE
def regrade(
    folder: Path,
    publish: bool,
    again: tuple[str, ...],
    jobs: int | None,
    cluster: str | None,
    seed: int | None,
    isolation: Any,
    course: Path | None,
) -> int:
    """Grade a class again after a change of the course.

    \b
    grader regrade --in results/             who changes, and by how much
    grader regrade --in results/ --publish   and write the reports

    Only exercises that have changed are run again. Adjustments stay. Nothing is
    published before you have seen what changes.
    """
    from grader.commands import regrade as regrading
    from grader.commands.progress import Meter

    with graded_class(folder, course, seed) as book, contextlib.ExitStack() as stack:
        students = [known_student(book, name) for name in again]
        engine = engine_for(book.course, isolation, jobs, cluster)
        stack.callback(engine.close)
        stack.callback(book.ledger.restore)  # unless it is published
        for student in students:
            book.ledger.set_aside(student)
        with Meter(None, None, None).shown() as meter:
            changes = regrading.regrade(book, engine, meter.told)
        for line in regrading.told(changes):
            click.echo(f"  {line}")
        if not publish and (not sys.stdin.isatty() or not click.confirm("\n  Publish this?")):
            click.echo("\n  nothing is published: grader regrade --publish does")
            return 0
        regrading.publish(book, folder)
        click.echo(f"\n  published: {short(folder)}")
    return 0


def known_student(book: Classbook, student: str) -> str:
    """The student, if it is one; `RequestError` otherwise."""
    from grader.course.course import did_you_mean
    from grader.errors import RequestError

    students = book.ledger.students()
    if student not in students:
        raise RequestError(
            f"nobody called `{student}` has handed in{did_you_mean(student, students)}",
            "grades.csv lists everybody",
        )
    return student


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("student")
@click.argument("exercise")
@click.argument("points", type=float, metavar="±POINTS")
@click.option("--why", required=True, metavar="TEXT", help="The student reads this.")
@GRADED
@COURSE
def adjust(
    student: str, exercise: str, points: float, why: str, folder: Path, course: Path | None
) -> int:
    """Add points to an exercise of a student, or take some away.

    \b
    grader adjust s004 layer_norm +2 --why "right idea, one sign" --in results/
    grader adjust s004 layer_norm 0 --why "taken back" --in results/

    It comes on top of what the tests give, now and after every regrade, and stands
    in the student's report. Another adjustment of the same exercise takes its place.
    """
    from grader.errors import RequestError
    from grader.classroom.publishing import Publisher

    if not math.isfinite(points):
        raise RequestError(f"{points} is no number of points", "such as +2, -1.5 or 0")
    with graded_class(folder, course) as book:
        known_student(book, student)
        book.ledger.adjust(student, book.course[exercise].name, points, why)
        publisher = Publisher(book, folder)
        report = publisher.publish(student) if book.is_as_published else None
        if report is None:
            click.echo("  kept, and not published: grader regrade shows what else has changed")
            return 0
        publisher.finish()
        click.echo(verdict(report))
    return 0


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@COURSE
def merge(folder: Path, course: Path | None) -> int:
    """Put the parts of a class together that `grader batch --shard` graded.

    \b
    grader batch submissions/ --out results/ --seed 7 --shard 1/2
    grader batch submissions/ --out results/ --seed 7 --shard 2/2
    grader merge results/
    """
    from grader.classroom.run import Run
    from grader.course.course import find_course
    from grader.classroom.standings import Classbook
    from grader.errors import RequestError
    from grader.classroom.ledger import opened
    from grader.classroom.publishing import Publisher
    from grader.commands.merge import absorb_all, parts_of

    found = find_course(course or Path.cwd())
    parts = parts_of(folder)
    with opened(folder) as ledger:
        absorb_all(ledger, parts)
        book = Classbook(found, ledger, ledger.get("seed"))
        book.refuse_changed()
        run = Run(book, lambda event: None)
        if not run.is_done:
            raise RequestError(
                "some submissions are not graded yet, or the course has changed since",
                f"grader regrade --in {folder}   grades what is left",
            )
        worst = 0
        publisher = Publisher(book, folder)
        for student in ledger.students():
            report = publisher.publish(student)
            if report is not None:
                worst = max(worst, code_of(report))
        publisher.finish()
        click.echo(f"  {len(parts)} parts, {students(len(ledger.students()))}: {short(folder)}")
    return worst


@click.command()
@click.argument("form", metavar="FORMAT", type=click.Choice(EXPORTS))
@click.argument(
    "gradebook", required=False, type=click.Path(path_type=Path, dir_okay=False), metavar="[FILE]"
)
@GRADED
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Where to. Default: in DIR, beside the reports.",
)
@click.option("--column", metavar="NAME", help="The gradebook's column, or a part of its name.")
@click.option("--scale", is_flag=True, help="Scale marks to the gradebook's own maximum.")
@COURSE
def export(form: str, folder: Path, course: Path | None, **asked: Any) -> int:
    """Bring the marks to where they are needed.

    \b
    grader export canvas gradebook.csv    fill in a gradebook that Canvas exported
    grader export moodle worksheet.csv    fill in a grading worksheet of Moodle
    grader export gradescope              results.json for each student
    grader export classroom50             result.json for each student
    grader export junit                   one file, for continuous integration
    grader export csv                     the marks once more

    A gradebook keeps every other byte, and the original stays as it is. If a student
    is in no row of it, nothing is written, and you are told who.
    """
    from grader.commands import export as exports

    with graded_class(folder, course) as book:
        for line in exports.export(book, folder, exports.Asked(form, **asked), os.environ):
            click.echo(f"  {line}")
    return 0


COMMANDS = (adjust, export, merge, regrade)
