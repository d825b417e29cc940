"""`grader init`: a folder of exercises to start with."""

from __future__ import annotations

from pathlib import Path

import click

from grader.commands.bringing import NOTEBOOKS, bring, students_files
from grader.commands.options import PATH, short_path
from grader.course.course import find_course, load_course, packaged_course
from grader.errors import RequestError


@click.command()
@click.argument("folder", type=PATH, required=False, metavar="[DIR]")
@click.option(
    "--course",
    "root",
    type=PATH,
    metavar="DIR",
    help="Take the exercises of the course in DIR. Default: those that came with the grader.",
)
@NOTEBOOKS
def init(folder: Path | None, root: Path | None, notebooks: bool) -> int:
    """Write the exercises into a folder, to start with.

    \b
    grader init              into the folder attention/, or that of the course here
    grader init homework     into homework/
    grader init .            into this folder

    Call it again after an update of the grader: what you have changed stays as it is.
    """
    course = load_course(root) if root else packaged_course()
    if folder is None:
        folder = _folder_here() or Path("attention")
    if course.root.resolve() == folder.resolve():
        raise RequestError(f"{folder} is the course itself", "grader init another-folder")
    bring(students_files(course, notebooks=notebooks), folder).echo(folder)
    first = course.names[0]
    enter = "" if folder.resolve() == Path.cwd() else f"  cd {short_path(folder)}\n"
    click.echo(
        "\nThe task of an exercise is at the top of its file. "
        f"The first is\nexercises/{first}.py:\n\n{enter}  grader check {first}\n"
        "\n`grader` alone says where you stand and what is next."
    )
    return 0


def _folder_here() -> Path | None:
    """Return the folder of the students' course in which the command is called, if there is one."""
    try:
        here = find_course(Path.cwd())
    except RequestError:
        return None
    return here.root if here.suites == "public" else None
