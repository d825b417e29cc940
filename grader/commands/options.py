"""Options that the commands share, and how they show paths and results."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import click

from grader.course.course import find_course
from grader.report import Report
from grader.reports.text import SCREEN
from grader.sandbox.confinement.layers import Isolation

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

COURSE_FOLDER = functools.partial(
    click.option,
    "--course",
    type=PATH,
    metavar="DIR",
    help="The course's folder. Default: this folder or the nearest one above it that holds a "
    "course.",
)
COURSE = COURSE_FOLDER(
    "course", callback=lambda context, option, folder: find_course(folder or Path.cwd())
)
SEED = click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**48),
    metavar="N",
    help="Draw the random inputs of the tests from seed N. Default: a new seed for each run.",
)


def isolation_option(default: Isolation) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option that chooses how student code is confined."""
    return click.option(
        "--isolation",
        type=click.Choice(get_args(Isolation)),
        default=default,
        show_default=True,
        help="confined: every layer that `grader doctor` lists, or nothing is run; "
        "process: a separate process, with the layers that this machine has.",
    )


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on the error stream, if it is a terminal; yield its next step."""
    if not sys.stderr.isatty():
        yield lambda name: None
        return
    with click.progressbar(
        length=total, file=sys.stderr, item_show_func=lambda x: x, bar_template="%(bar)s %(info)s"
    ) as bar:
        yield lambda name: bar.update(int(bar.current_item is not None), name)
    click.echo("\x1b[1A\x1b[2K", nl=False, file=sys.stderr)


def terminal_height() -> int:
    """Return the number of lines of the terminal; if there is none, of a small one."""
    return shutil.get_terminal_size().lines if sys.stdout.isatty() else SCREEN


def short_path(path: Path) -> str:
    """Return a path relative to the current folder if it is inside it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def echo_check(is_good: bool, what: str, reason: str = "", remedy: str = "") -> None:
    """Print a line with ✓ or ✗; below it the reason and the remedy, if there are any."""
    mark = click.style("✓", fg="green") if is_good else click.style("✗", fg="red")
    click.echo(f"  {mark} {what}")
    for text in filter(None, (reason, remedy)):
        click.echo(click.wrap_text(text, 79, "      ", "      "))


def exit_code(report: Report) -> int:
    """Return the exit code of a command that made this report."""
    if report.has_errors:
        return 3
    return 0 if report.passed else 1
