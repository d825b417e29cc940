"""`grader export`: write the marks of a graded class for other platforms."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import click

from grader.classroom.gradebooks import Filled, StudentMark, fill_canvas, fill_moodle
from grader.classroom.publishing import writing
from grader.classroom.standings import Standing, Standings
from grader.commands.graded import GRADED, echo_review, graded_class
from grader.commands.options import COURSE, FILE, PATH
from grader.commands.published import (
    Choice,
    class_marks,
    published_standings,
    read_gradebook,
    refuse_overwriting,
    spared_each,
    visible,
    write_filled,
)
from grader.course.course import Course
from grader.errors import RequestError
from grader.reports import to_text
from grader.reports.platforms.classroom50 import to_result
from grader.reports.platforms.grades import write_csv
from grader.reports.platforms.gradescope import to_results
from grader.reports.platforms.junit import to_junit


def _csv(file: TextIO, standings: Standings, published: list[Standing]) -> None:
    reports = (one.report for one in published)
    write_csv(file, standings.course.names, standings.with_missing(reports))


def _junit(file: TextIO, standings: Standings, published: list[Standing]) -> None:
    file.write(to_junit(report for _, report in spared_each(standings, published, visible)))


def _gradescope(standings: Standings, standing: Standing) -> object:
    return to_results(visible(standings, standing), visible(standings, standing, later=True))


def _classroom50(standings: Standings, standing: Standing) -> object:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return to_result(visible(standings, standing), os.environ, now)


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
@click.option(
    "--per-exercise",
    is_flag=True,
    help="Fill in a column for each exercise; add those that the gradebook does not have.",
)
@click.option(
    "--skip-unmatched",
    is_flag=True,
    help="Export even if some students are not in the gradebook.",
)
@COURSE
def export(
    form: str,
    gradebook: Path | None,
    folder: Path,
    output: Path | None,
    column: str | None,
    scale: bool,
    per_exercise: bool,
    skip_unmatched: bool,
    course: Course,
) -> int:
    """Write the marks for another platform.

    \b
    grader export canvas gradebook.csv    fill in a gradebook that Canvas exported
    grader export moodle worksheet.csv    fill in a grading worksheet of Moodle
    grader export gradescope              results.json for each student
    grader export classroom50             result.json for each student
    grader export junit                   one file, for continuous integration
    grader export csv                     the marks once more

    Every other byte of a gradebook stays, and the original file is not changed. If a student is in
    no row of it, nothing is written, and the student is named.
    """
    choice = Choice(column, scale, per_exercise, skip_unmatched)
    # The CSV has a column for each exercise in any case.
    if form not in GRADEBOOKS and choice != Choice(per_exercise=per_exercise and form == "csv"):
        raise RequestError(f"`{form}` has no columns to choose", f"grader export {form}")
    with graded_class(course, folder) as standings:
        published, review = list(published_standings(standings)), standings.ledger.review
        if form in GRADEBOOKS:
            marks = list(class_marks(standings, published))
            for line in _fill(form, gradebook, marks, folder, output, choice):
                click.echo(f"  {line}")
            return echo_review(standings.ledger)
        if form in CLASS_FILES:
            name, write = CLASS_FILES[form]
            output = output or folder / name
            refuse_overwriting(output, folder=folder)
            with writing(output) as file:
                write(file, standings, published)
        else:
            name, content = STUDENT_FILES[form]
            output = output or folder / form
            for student, data in spared_each(standings, published, content):
                with review.errors_of(student), writing(output / student / name) as file:
                    file.write(to_text(data))
        click.echo(f"  {len(published)} students: {output}")
        return echo_review(standings.ledger)


def _fill(
    form: str,
    gradebook: Path | None,
    marks: list[StudentMark],
    folder: Path,
    output: Path | None,
    choice: Choice,
) -> Iterator[str]:
    if gradebook is None:
        raise RequestError(
            f"which gradebook? Download it from {form.capitalize()}",
            f"grader export {form} GRADEBOOK.csv",
        )
    filled = GRADEBOOKS[form](read_gradebook(gradebook), marks, **asdict(choice))
    output = output or folder / f"{gradebook.stem}-graded{gradebook.suffix}"
    yield from write_filled(filled, output, gradebook, folder)
