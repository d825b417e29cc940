"""`grader new`: an exercise to start from, with a list of what is left to do."""

from __future__ import annotations

import keyword
from pathlib import Path

import click
from jinja2 import Environment

from grader.commands.bringing import templates
from grader.commands.options import COURSE_FOLDER, short_path
from grader.course.course import Course, find_course
from grader.errors import RequestError

STAGE = "centred"  # the variable of the solution that stands in the new files
COURSE_FILE = "course.toml"


@click.command()
@click.argument("name")
@COURSE_FOLDER("root")
def new(name: str, root: Path | None) -> int:
    """Write an exercise to start from; `grader validate NAME` lists what is left to do.

    In a folder without a course, a course begins with it.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise RequestError(f"`{name}` cannot name a module", "grader new my_exercise")
    made = templates("new_files")
    course = _course(root)
    reference = course.reference if course else (root or Path.cwd()) / "reference"
    if course is not None and course.suites != "hidden":
        raise RequestError(f"{course.root} is a students' copy", "--course DIR")
    folder = reference / name
    if folder.exists():
        raise RequestError(f"{short_path(folder)} is there already", "choose another name")
    order = 1 + max((each.order for each in course.exercises), default=0) if course else 1
    if course is None:
        _write(made, COURSE_FILE, reference, {})
    for template in sorted(set(made.list_templates()) - {f"{COURSE_FILE}.j2"}):
        file = template.removesuffix(".j2")
        _write(made, file, folder, {"name": name, "order": order, "stage": STAGE})
    click.echo(f"wrote {short_path(folder)}: its files are an example, to be replaced")
    click.echo(f"\n  grader validate {name}   lists what is left to do")
    return 0


def _course(root: Path | None) -> Course | None:
    """Return the course that the exercise will belong to; None if it is the first of a new one."""
    try:
        return find_course(root or Path.cwd())
    except RequestError:
        return None


def _write(made: Environment, file: str, folder: Path, values: dict[str, object]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(made.get_template(f"{file}.j2").render(values), "utf-8")
    except OSError as error:
        problem = f"cannot write {folder / file}: {error.strerror}"
        raise RequestError(problem, "--course DIR") from None
