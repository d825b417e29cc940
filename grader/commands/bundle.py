"""`grader bundle`: the course in one encrypted file."""

from __future__ import annotations

from pathlib import Path

import click

from grader.commands.options import FILE, KEY_FILE, OWN_COURSE, SERIAL_VARIABLE, short_path
from grader.commands.own_wheel import files_below
from grader.course.bundle import MAX_SERIAL, new_key, new_serial, seal, take_key
from grader.course.course import Course
from grader.errors import RequestError
from grader.files import write_whole


@click.command()
@click.option(
    "--out",
    "file",
    type=FILE,
    default="course.bundle",
    show_default=True,
    metavar="FILE",
    help="The file to write.",
)
@click.option(
    "--new-key",
    is_flag=True,
    is_eager=True,  # before a course is looked for, because a key needs none
    expose_value=False,
    callback=lambda context, option, value: _print_key(context) if value else None,
    help="Print a new key, and write nothing.",
)
@KEY_FILE()
@click.option(
    "--serial",
    type=click.IntRange(1, MAX_SERIAL),
    metavar="N",
    help="The serial of the bundle, which only grows. Default: the UTC time, as 20260131235959.",
)
@OWN_COURSE
def bundle(file: Path, key_file: str | None, serial: int | None, course: Course) -> int:
    """Write what grading needs (reference/) into one encrypted file.

    \b
    export GRADER_COURSE_KEY=$(grader bundle --new-key)   once; keep it as a secret
    grader bundle --out course.bundle                     after each change of the course
    grader batch submissions/ --out results/ --bundle course.bundle
    grader check exercises --bundle https://…/course.bundle

    The file without the key reveals only its size. Where a bundle is opened, student code runs
    confined or not at all. --min-serial refuses old bundles. docs/ci.md says where the key may be.
    """
    if course.suites != "hidden":
        raise RequestError(f"{course.root} has no reference/ to bundle", "--course DIR")
    course.refuse_unreviewed(course.names)
    files = {
        path.relative_to(course.root).as_posix(): path.read_bytes()
        for path in files_below(course.reference)
    }
    serial = serial or new_serial()
    sealed = seal(files, take_key(key_file or ""), serial)
    try:
        write_whole(file, sealed)
    except OSError as error:
        raise RequestError(f"cannot write {file}: {error.strerror}", "--out FILE") from None
    click.echo(f"wrote {short_path(file)}: {len(files)} files of {course.title}, encrypted")
    click.echo("it opens with this key alone")
    click.echo(f"{SERIAL_VARIABLE}={serial}   refuses every older one")
    return 0


def _print_key(context: click.Context) -> None:
    click.echo(new_key())
    context.exit()
