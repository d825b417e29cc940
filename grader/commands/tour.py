"""`grader tour`: one sentence through a student's own exercises, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.commands import work
from grader.commands.options import ANY_COURSE, FILE, isolation_option, progress_bar
from grader.course.course import Course, Exercise
from grader.course.stubs import make_stub
from grader.errors import RequestError
from grader.files import put_file
from grader.report import Drawing
from grader.reports import pages
from grader.sandbox.confinement.limits import Isolation
from grader.sandbox.host.source import WorkerSource

if TYPE_CHECKING:
    from grader.grading.grader import OnProgress


@click.command()
@click.option(
    "-o",
    "--output",
    type=FILE,
    default="grader-tour.html",
    show_default=True,
    metavar="FILE",
    help="Write the page to FILE.",
)
@isolation_option("process")
@ANY_COURSE
def tour(output: Path, isolation: Isolation, course: Course) -> int:
    """Lead one sentence through your exercises, and draw each stage on a page.

    Where your exercise is right, the stage shows what your code computes. Where it is not written
    yet, PyTorch's own part stands in, so the tour can be taken at any time.
    """
    leader = course.leader_of_tour()
    with work.starting(isolation) as source:
        request = work.parse_targets((), course)
        with progress_bar(1) as on_exercise:
            stages = led(request, leader, source, on_exercise)
    click.echo(told(stages))
    try:
        put_file(output, pages.tour(stages), below=[Path.cwd()])
    except OSError as error:
        raise RequestError(f"cannot write {output}: {error.strerror}", "--output FILE") from None
    click.echo(f"wrote {output}", err=True)
    return 0


def led(
    request: work.CheckRequest, leader: Exercise, source: WorkerSource, on_exercise: OnProgress
) -> tuple[Drawing, ...]:
    """Return the stages of the tour through a student's work; raises `RequestError` if it fails."""
    if request.course.suites == "hidden":
        problem = f"a tour is for a students' copy, and {request.course.root} has the solutions"
        raise RequestError(problem, "grader init mine && cd mine && grader tour")
    submission, name = request.submission, leader.name
    if name not in submission.files:  # its part has a stand-in, too
        place = work.students_folder(request.course) / f"{name}.py"
        files = {**submission.files, name: make_stub(leader)}
        submission = replace(submission, files=files, paths={**submission.paths, name: str(place)})
    asked = replace(request, submission=submission, names=(name,))
    (result,) = work.check(asked, source, on_exercise=on_exercise).exercises
    if not result.pictures:
        problem = f"the sentence cannot be led through these exercises: {result.advice or name}"
        raise RequestError(problem, f"grader check {name}")
    return result.pictures


def told(stages: Sequence[Drawing]) -> str:
    """Return the stages as lines for a terminal."""
    lines = ((f"  {n}. {stage.title}", f"     {stage.whose}") for n, stage in enumerate(stages, 1))
    return "\n".join(line for pair in lines for line in pair if line.strip())
