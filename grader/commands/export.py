"""`grader export`: write the marks of a graded class for other platforms."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO, TypeVar

import click

from grader.classroom.gradebooks import Filled, StudentMark, fill_canvas, fill_moodle
from grader.classroom.publishing import writing
from grader.classroom.standings import Standing, Standings
from grader.classroom.stored.marks import PublishedMark
from grader.commands.graded import GRADED, echo_review, graded_class
from grader.commands.options import COURSE, FILE, PATH
from grader.course.course import Course
from grader.course.visibility import for_student
from grader.errors import RequestError
from grader.files import read_bounded
from grader.report import Report
from grader.reports.platforms.classroom50 import to_result
from grader.reports.platforms.grades import write_csv
from grader.reports.platforms.gradescope import to_results
from grader.reports.platforms.junit import to_junit
from grader.submissions.notes import folded

T = TypeVar("T")
MAX_GRADEBOOK_BYTES = 64 << 20


def _csv(file: TextIO, standings: Standings, published: list[Standing]) -> None:
    reports = (one.report for one in published)
    write_csv(file, standings.course.names, standings.with_missing(reports))


def _junit(file: TextIO, standings: Standings, published: list[Standing]) -> None:
    file.write(to_junit(report for _, report in _spared(standings, published, _visible)))


def _gradescope(standings: Standings, standing: Standing) -> object:
    return to_results(_visible(standings, standing), _visible(standings, standing, later=True))


def _classroom50(standings: Standings, standing: Standing) -> object:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return to_result(_visible(standings, standing), os.environ, now)


GRADEBOOKS: Mapping[str, Callable[..., Filled]] = {"canvas": fill_canvas, "moodle": fill_moodle}
STUDENT_FILES = {
    "gradescope": ("results.json", _gradescope),
    "classroom50": ("result.json", _classroom50),
}
CLASS_FILES = {"csv": ("marks.csv", _csv), "junit": ("junit.xml", _junit)}


@click.command()
@click.argument(
    "form", metavar="FORMAT", type=click.Choice([*GRADEBOOKS, *STUDENT_FILES, *CLASS_FILES])
)
@click.argument("gradebook", required=False, type=FILE, metavar="[FILE]")
@GRADED
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="PATH",
    help="Where to write. Default: in DIR, beside the reports.",
)
@click.option("--column", metavar="NAME", help="The gradebook's column, or a part of its name.")
@click.option("--scale", is_flag=True, help="Scale the marks to the gradebook's own maximum.")
@COURSE
def export(
    form: str,
    gradebook: Path | None,
    folder: Path,
    output: Path | None,
    column: str | None,
    scale: bool,
    course: Course,
) -> int:
    """Write the marks for the platform they go to.

    \b
    grader export canvas gradebook.csv    fill in a gradebook that Canvas exported
    grader export moodle worksheet.csv    fill in a grading worksheet of Moodle
    grader export gradescope              results.json for each student
    grader export classroom50             result.json for each student
    grader export junit                   one file, for continuous integration
    grader export csv                     the marks once more

    Every other byte of a gradebook stays, and the original file is not changed. If a
    student is in no row of it, nothing is written, and you are told who.
    """
    with graded_class(course, folder) as standings:
        published, review = list(_published(standings)), standings.ledger.review
        if form in GRADEBOOKS:
            marks = list(_marks(standings, published))
            for line in _fill(form, gradebook, marks, folder, output, column, scale):
                click.echo(f"  {line}")
            return echo_review(standings.ledger)
        if form in CLASS_FILES:
            name, write = CLASS_FILES[form]
            output = output or folder / name
            with writing(output) as file:
                write(file, standings, published)
        else:
            name, content = STUDENT_FILES[form]
            output = output or folder / form
            for student, data in _spared(standings, published, content):
                with review.sparing(student), writing(output / student / name) as file:
                    file.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        click.echo(f"  {len(published)} students: {output}")
        return echo_review(standings.ledger)


def _published(standings: Standings) -> Iterator[Standing]:
    """Yield every student's standing; raise `RequestError` if one is not as published.

    Students of whom something stored is damaged are left out and named. What does not say any more
    whose it was may be of any student who is not as published.
    """
    ledger = standings.ledger
    students, stale = ledger.students(), []
    unknown = ledger.damage("") if standings.is_as_published else ()
    for student in students:
        standing, old = standings.spared(student), ledger.published(student)
        if standing and old and not _differ(old, standing.published(standings.rules)):
            yield standing
        elif damage := ledger.damage(student) or unknown:
            ledger.review.add(student, f"{damage[0]}, and the mark is not exported")
        elif student not in ledger.review.reasons:
            stale.append(student)
    if stale:
        who = folded([ledger.named(student) for student in stale], 5)
        raise RequestError(
            f"the marks of these students are not published as they stand now: {who}",
            "grader regrade   shows what has changed, and publishes it",
        )
    if not students:
        raise RequestError("nobody was graded here", "grader batch SUBMISSIONS --out DIR")


def _spared(
    standings: Standings, published: list[Standing], make: Callable[[Standings, Standing], T]
) -> Iterator[tuple[str, T]]:
    """Yield each student with what `make` makes of the standing; name those over whom it fails."""
    for standing in published:
        student, made = standing.report.submission, []
        with standings.ledger.review.sparing(student):
            made.append((student, make(standings, standing)))
        yield from made


def _differ(old: PublishedMark, new: PublishedMark) -> bool:
    return (old.rules, old.seed, old.points) != (new.rules, new.seed, new.points)


def _visible(standings: Standings, standing: Standing, *, later: bool = False) -> Report:
    due = standings.course.policy.due
    now = due + timedelta(seconds=1) if later and due else None
    return for_student(standing.report, standings.course.policy, now)


def _marks(standings: Standings, published: list[Standing]) -> Iterator[StudentMark]:
    """Yield the mark of every student, also of those whom the course gives 0 for nothing."""
    for report in (standing.report for standing in published):
        yield StudentMark(report.submission, report.person, report.counted, report.max_counted)
    for one in standings.missing():
        if one.points is not None:
            yield StudentMark(one.submission, one.person, one.points, one.max_points)


def _fill(
    form: str,
    gradebook: Path | None,
    marks: list[StudentMark],
    folder: Path,
    output: Path | None,
    column: str | None,
    scale: bool,
) -> Iterator[str]:
    if gradebook is None:
        raise RequestError(
            f"which gradebook? Download it from {form.capitalize()}",
            f"grader export {form} GRADEBOOK.csv",
        )
    filled = GRADEBOOKS[form](_read(gradebook), marks, column=column, scale=scale)
    output = output or folder / f"{gradebook.stem}-graded{gradebook.suffix}"
    with writing(output) as file:
        file.buffer.write(filled.data)
    yield f"{filled.written} marks in column {filled.column}: {output}"
    if filled.without:
        yield f"left as they were, {len(filled.without)}: {folded(filled.without)}"
    if filled.excused:
        yield f"excused, and left as they were: {folded(filled.excused)}"


def _read(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_GRADEBOOK_BYTES)
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}") from None
