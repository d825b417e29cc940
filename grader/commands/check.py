"""`grader check`: grade my work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from grader.commands import work
from grader.commands.checkout import PlacesInCheckout
from grader.commands.options import (
    ANY_COURSE,
    FILE,
    SEED,
    WORKERS,
    exercises_or_paths,
    exit_code,
    isolation_option,
    progress_bar,
    terminal_height,
)
from grader.course.course import Course
from grader.errors import RequestError
from grader.files import put_file
from grader.printing import behind_filter
from grader.reports import FOR_JOBS, FORMATS, render
from grader.reports.remarks import Checkout
from grader.sandbox.confinement.limits import Isolation
from grader.sandbox.host.source import cannot_confine
from grader.sandbox.host.starting import StartMethod, use_start_method


@click.command()
@click.argument("targets", nargs=-1, metavar="[NAMES|PATHS]...", shell_complete=exercises_or_paths)
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMATS, *FOR_JOBS]),
    default=FORMATS[0],
    show_default=True,
    help="How to print the report.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Write the report to FILE instead of printing it.",
)
@click.option(
    "--also",
    multiple=True,
    metavar="FORMAT=FILE",
    callback=lambda context, option, values: [_parse_also(value) for value in values],
    help="Write the report to FILE in another format, too; may be given several times.",
)
@click.option(
    "--allow-untouched", is_flag=True, help="Exit with 0 as long as no exercise was begun."
)
@click.option("--all", "everything", is_flag=True, help="Show more than one screen.")
@click.option("--watch", is_flag=True, help="Keep running, and grade again on every save.")
@click.option(
    "--manual",
    is_flag=True,
    help="With --watch: press Enter to grade again; keys are letters followed by Enter.",
)
@SEED
@isolation_option("process")
@WORKERS
@ANY_COURSE
def check(
    targets: tuple[str, ...],
    form: str,
    output: Path | None,
    also: Sequence[tuple[str, Path]],
    allow_untouched: bool,
    everything: bool,
    watch: bool,
    manual: bool,
    seed: int | None,
    isolation: Isolation,
    workers: StartMethod | None,
    course: Course,
) -> int:
    """Grade exercises and say what to fix first.

    \b
    grader check                      the next exercise that does not pass yet
    grader check layer_norm           one exercise, by name
    grader check exercises            every exercise in a folder; "." is this one
    grader check work/layer_norm.py   one file, or a notebook of that name
    grader check submissions/s001     a folder or a zip of exercise files
    grader check --watch              again on every save, on one screen
    """
    if course.sealed:
        isolation = "confined"
        _refuse_unconfined(course)
    if workers:
        use_start_method(workers)
    if watch or manual:
        if form != "text" or output is not None or also:
            raise RequestError("--watch is for the terminal", "leave out --format and --output")
        if any(target.endswith(".zip") for target in targets):
            raise RequestError("a zip cannot be watched", "unpack it, and watch the folder")
    begun = watch or manual or work.may_be_begun(targets, course)
    with work.starting(isolation, again=watch or manual, begun=begun) as source:
        request = work.parse_targets(targets, course, following=not (watch or manual))
        if watch or manual:
            from grader.commands.watch import watch as grade_on_save  # noqa: PLC0415, slow

            return 0 if grade_on_save(request, source, seed, manual=manual) else 1
        graded = [Path(path).absolute() for path in request.submission.paths.values()]
        for path in filter(None, (output, *(path for _, path in also))):
            if path.absolute() in graded:
                raise RequestError(f"{path} is the file that is graded", "-o another-file")
        # Programs that read the report expect each check in it.
        unbegun = work.unbegun(request, seed) if form == "text" and not also else None
        with progress_bar(len(request.names)) as on_exercise:
            timed = _Timed(on_exercise)
            report = unbegun or work.check(request, source, seed, timed)
    height = None if everything or output else terminal_height()
    here = [Path.cwd(), *(path if path.is_dir() else path.parent for path in request.paths)]
    places = PlacesInCheckout(request.course, request.submission)
    checkout = Checkout(places, timed.seconds())
    _deliver(render(report, form, height, checkout), form, output, here)
    for other, path in also:
        _deliver(render(report, other, checkout=checkout), other, path, here)
    if form == "text" and report.passed and sys.stdout.isatty():
        following = work.next_exercise(course, work.own_work(course))
        click.echo(f"  next: grader check {following}" if following else "  All done.")
    return 0 if allow_untouched and report.state == "not started" else exit_code(report)


class _Timed:
    """Hears of each exercise before it is graded, tells another, and measures how long it takes."""

    def __init__(self, on_exercise: Callable[..., None]) -> None:
        self._tell = on_exercise
        self._begun: dict[str, float] = {}

    def __call__(self, name: str, note: str = "") -> None:
        self._begun.setdefault(name, time.monotonic())
        self._tell(name, note)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each exercise, when the last one has just been graded."""
        ends = [*self._begun.values(), time.monotonic()][1:]
        return {
            name: end - begun for (name, begun), end in zip(self._begun.items(), ends, strict=True)
        }


def _refuse_unconfined(course: Course) -> None:
    """Raise `RequestError` if student code could read a secret course."""
    if sys.platform != "linux":
        raise cannot_confine("That works only on Linux.")
    from grader.classroom.workers.pool import refuse_unconfined  # noqa: PLC0415, slow

    refuse_unconfined(course)


def _parse_also(value: str) -> tuple[str, Path]:
    """Return the format and the file of an `--also`."""
    form, _, path = value.partition("=")
    forms = (*FORMATS, *FOR_JOBS)
    if form not in forms or not path:
        raise click.BadParameter(f"{value} is not FORMAT=FILE with one of: {', '.join(forms)}")
    return form, Path(path)


def _deliver(text: str, form: str, output: Path | None, here: list[Path]) -> None:
    """Print a report or write it to a file; never print HTML to a terminal.

    The folders `here` may be a stranger's: no link in them is followed.
    """
    if output is None and form == "html" and sys.stdout.isatty():
        output = Path("grader-report.html")
    if output is None:
        # GitHub obeys these lines; the student's text in them is escaped.
        stream = behind_filter(sys.stdout) if form == "github" else None
        click.echo(text, file=stream, nl=False)
        return
    try:
        put_file(output, click.unstyle(text), below=here)
    except OSError as error:
        raise RequestError(f"cannot write {output}: {error.strerror}", "--output FILE") from None
    click.echo(f"wrote {output}", err=True)
