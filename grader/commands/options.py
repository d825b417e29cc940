"""Options that the commands share, and how they show paths and results."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, get_args

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from grader.commands.trusted_courses import recognised, refuse_untrusted
from grader.course.bundle import KEY_FILE_OPTION, KEY_VARIABLE, MAX_SERIAL, drop_key
from grader.course.course import Course, course_in, find_course, packaged_course
from grader.course.places import bundled_course, course_at
from grader.course.policy import CourseList
from grader.errors import GraderError, RequestError
from grader.report import Report
from grader.reports.text import SCREEN
from grader.sandbox.confinement.limits import Isolation
from grader.sandbox.host.starting import StartMethod

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
BUNDLE = "grader.bundle"  # the key of a command's bundle in click's context
KEY = "grader.key"  # the key of the file with the bundle's key
MIN_SERIAL = "grader.min_serial"  # of the smallest serial that it takes
NEEDS_BUNDLE = "grader.needs_bundle"  # of whether the command line sets it
INSECURELY = "grader.insecurely"  # of whether http addresses are allowed
CHOSEN = "grader.chosen"  # of the list of exercises
LIST_VARIABLE = "GRADER_COURSE_LIST"
SERIAL_VARIABLE = "GRADER_MIN_SERIAL"
PROGRESS_VARIABLE = "GRADER_PROGRESS"  # set by a notebook
BAR = 10  # the width of a progress bar
BESIDE_THE_BAR = 8  # blanks and the percentage

COURSE_FOLDER = functools.partial(
    click.option,
    "--course",
    type=PATH,
    metavar="DIR",
    help="The course's folder. Default: this folder or the nearest one above it that holds a "
    "course.",
)


def exercise_names(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Return the exercises of the course here whose names begin so, for the shell to complete."""
    with suppress(GraderError, OSError):
        course = find_course(Path.cwd())
        names = [each for each in course.exercises if each.name.startswith(begun)]
        return [CompletionItem(each.name, help=each.title) for each in names]
    return []


def exercises_or_paths(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Return the same, or let the shell complete a path."""
    return exercise_names(context, parameter, begun) or [CompletionItem(begun, type="file")]


def list_names(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Return the lists of the course here, or else of the course that came with the grader."""
    known: Mapping[str, CourseList] = {}
    with suppress(GraderError, OSError):
        known = packaged_course().lists
    with suppress(GraderError, OSError):
        known = find_course(Path.cwd()).lists or known
    return [
        CompletionItem(name, help=it.title) for name, it in known.items() if name.startswith(begun)
    ]


def course_of_folder(folder: Path | None) -> Course:
    """Return the course in the named folder, or else the one here."""
    return find_course(Path.cwd()) if folder is None else course_in(folder.absolute())


# For commands that change the course or store something beside it.
OWN_COURSE = COURSE_FOLDER(
    "course",
    callback=lambda context, option, folder: refuse_untrusted(course_of_folder(folder)),
)


# For users who keep the key out of the environment, because other programs can read that.
KEY_FILE = functools.partial(
    click.option,
    KEY_FILE_OPTION,
    metavar="FILE",
    help=f"Read the bundle's key from FILE, - for standard input. Default: {KEY_VARIABLE}.",
)

# Read before `--course`, whose value is the course with these exercises.
COURSE_LIST = click.option(
    "--course-list",
    metavar="NAME",
    shell_complete=list_names,
    envvar=LIST_VARIABLE,
    is_eager=True,
    expose_value=False,
    callback=lambda context, option, name: context.meta.update({CHOSEN: name}),
    help="Which list of the course's exercises to take. Default: the first in course.toml.",
)


# Read before `--course` and `--bundle`, which load addresses.
INSECURE = click.option(
    "--insecure",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, option, value: context.meta.update({INSECURELY: value}),
    help="Load a course or a bundle from an http:// address, too. Then anybody on the way can "
    "read it, and put another course or an older bundle in its place.",
)


def _with_course(
    command: Callable[..., Any], accept: Callable[[Course], Course] = refuse_untrusted
) -> Callable[..., Any]:
    """Give a command a course: `--course` with any place, or `--bundle` with a bundle."""
    bundle = click.option(
        "--bundle",
        metavar="FILE|URL",
        is_eager=True,  # read before `--course`, which returns its course
        expose_value=False,
        callback=lambda context, option, place: context.meta.update({BUNDLE: place}),
        help="The course as `grader bundle` has written it; anything else is refused.",
    )
    key_file = KEY_FILE(
        is_eager=True,
        expose_value=False,
        callback=lambda context, option, file: context.meta.update({KEY: file or ""}),
    )
    min_serial = click.option(
        "--min-serial",
        type=click.IntRange(0, MAX_SERIAL),
        metavar="N",
        envvar=SERIAL_VARIABLE,
        show_envvar=True,
        is_eager=True,
        expose_value=False,
        callback=_note_min_serial,
        help="Refuse an old bundle, whose serial is smaller than N.",
    )
    course = click.option(
        "--course",
        metavar="PLACE",
        callback=lambda context, option, place: accept(_course(context, place)),
        help="The course: a folder, a zip of it, the address of one, or the name of an installed "
        "package. Default: this folder or the nearest one above it that holds a course.",
    )
    return course(COURSE_LIST(bundle(key_file(min_serial(INSECURE(command))))))


COURSE = _with_course
# For commands that run no code of the course in their own process.
ANY_COURSE = functools.partial(_with_course, accept=recognised)


SEED = click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**48),
    metavar="N",
    help="Draw the random inputs of the tests from seed N. Default: a new seed for each run.",
)


WORKERS = click.option(
    "--workers",
    type=click.Choice(get_args(StartMethod)),
    help="How the processes that run the code are started. fork is fast, and the default on "
    "Linux; spawn works everywhere.",
)


def isolation_option(default: Isolation) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the option for the confinement of student code."""
    return click.option(
        "--isolation",
        type=click.Choice(get_args(Isolation)),
        default=default,
        show_default=True,
        help="confined: every layer that `grader doctor` lists, or nothing is run; "
        "process: a separate process, with the layers that this machine has.",
    )


def _note_min_serial(context: click.Context, option: click.Parameter, value: int | None) -> None:
    """Store the smallest serial for `--bundle`; on the command line, it requires a bundle."""
    asked = context.get_parameter_source(option.name or "")
    is_said = value is not None and asked is ParameterSource.COMMANDLINE
    context.meta[MIN_SERIAL] = value or 0
    context.meta[NEEDS_BUNDLE] = is_said


def _course(context: click.Context, place: str | None) -> Course:
    """Return the course at a place or in the bundle; remove its temporary files at the end."""
    insecure = context.meta[INSECURELY]
    if bundle := context.meta[BUNDLE]:
        if place:
            raise RequestError("a bundle is a whole course", "leave out --course")
        if os.environ.get(SERIAL_VARIABLE) == "":  # CI sets an undefined variable to an empty text
            raise RequestError(f"{SERIAL_VARIABLE} is set but empty", f"unset {SERIAL_VARIABLE}")
        key_file, min_serial = context.meta[KEY], context.meta[MIN_SERIAL]
        opened = bundled_course(bundle, key_file, min_serial, insecure=insecure)
        course = context.with_resource(opened)
    elif context.meta[NEEDS_BUNDLE]:
        raise RequestError("only a bundle has a serial", "leave out --min-serial, or --bundle FILE")
    else:
        drop_key()  # removed, so that no later import finds it
        found = course_at(place, insecure=insecure) if place else None
        course = context.with_resource(found) if found else find_course(Path.cwd())
    return course.choose(context.meta[CHOSEN])


def refuse_handed_in(course: Course, submissions: Path) -> None:
    """Raise `RequestError` if the course was not named, but found among the submissions."""
    context = click.get_current_context()
    if context.meta[BUNDLE] or context.params.get("course") is None:
        return
    if context.get_parameter_source("course") is not ParameterSource.DEFAULT:
        return
    if course.root.resolve().is_relative_to(submissions.resolve()):
        problem = f"the course here, {course.root}, is part of what was handed in"
        raise RequestError(problem, "--course DIR   names your own course")


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[..., None]]:
    """Show a progress bar on the error stream, if it is a terminal; yield its next step.

    A call with a note is no step, but says how far the current one is. If `PROGRESS_VARIABLE` is
    set, another program of the grader reads the notes, one a line.
    """
    if os.environ.get(PROGRESS_VARIABLE):
        yield lambda name, note="": click.echo(f"{name} {note}".strip(), err=True)
        return
    if not sys.stderr.isatty():
        yield lambda name, note="": None
        return
    many = total > 1
    taken = BAR + BESIDE_THE_BAR if many else 1
    left = shutil.get_terminal_size().columns - taken  # a line that wraps could not be erased
    with click.progressbar(
        length=total,
        file=sys.stderr,
        item_show_func=lambda item: item and item[:left],
        bar_template="%(bar)s %(info)s" if many else "%(info)s",
        show_eta=False,  # no estimate: one exercise may take as long as all others
        show_percent=many,
        width=BAR,
    ) as bar:

        def step(name: str, note: str = "") -> None:
            is_next = not note and bar.current_item is not None
            bar.update(int(is_next), f"{name}: {note}" if note else name)
            if note:
                bar.render_progress()

        yield step
    click.echo("\x1b[1A\x1b[2K", nl=False, file=sys.stderr)


def terminal_height() -> int:
    """Return the number of lines of the terminal; without one, that of a small terminal."""
    return shutil.get_terminal_size().lines if sys.stdout.isatty() else SCREEN


def short_path(path: Path) -> str:
    """Return a path, relative to the current folder if it is inside it."""
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
    """Return the exit code for a command with this report."""
    if report.has_errors:
        return 3
    return 0 if report.passed else 1
