"""`grader init`: write a folder of exercises to start with."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import click

from grader.commands.bringing import bring
from grader.commands.options import CHOSEN, COURSE_LIST, INSECURE, INSECURELY, PATH, short_path
from grader.commands.students_files import WITH_NOTEBOOKS, students_files
from grader.commands.trusted_courses import files_among, trust_contents
from grader.course.course import (
    PUBLIC_COURSE,
    Course,
    find_course,
    load_public,
    packaged_course,
)
from grader.course.download import is_address
from grader.course.places import course_at
from grader.errors import RequestError


@click.command()
@click.argument("folder", type=PATH, required=False, metavar="[DIR]")
@click.option(
    "--course",
    "place",
    metavar="PLACE",
    help="Take the exercises of another course: of a folder, of a zip, of the address of one, or "
    "of an installed package. Default: those that came with the grader.",
)
@INSECURE
@COURSE_LIST
@WITH_NOTEBOOKS
@click.pass_context
def init(context: click.Context, folder: Path | None, place: str | None, notebooks: bool) -> int:
    """Write the exercises into a folder, to start with.

    \b
    grader init              into the folder attention/, or that of the course here;
                             with --course, into a folder of that course's name
    grader init homework     into homework/
    grader init .            into this folder
    grader init --course-list full    all exercises, and not only the core

    Run it again after an update of the grader: files that you have changed stay as they are.
    """
    if place:
        insecure = context.meta[INSECURELY]
        course = context.with_resource(course_at(place, insecure=insecure))
    else:
        course = packaged_course()
    if folder is None:
        folder = _folder_here(course) or Path(_name_of(place) if place else "attention")
    course = course.choose(context.meta[CHOSEN] or _chosen_before(folder))
    if course.root.resolve() == folder.resolve():
        raise RequestError(f"{folder} is the course itself", "grader init another-folder")
    files = students_files(course, notebooks=notebooks)
    bring(files, folder).echo(folder)
    trust_contents(files_among(files), "init")
    first = course.names[0]
    enter = "" if folder.resolve() == Path.cwd() else f"  cd {short_path(folder)}\n"
    click.echo(
        "\nThe task of an exercise is at the top of its file. "
        f"The first is\nexercises/{first}.py:\n\n{enter}  grader check {first}\n"
        "\n`grader` alone says where you stand and what is next."
    )
    return 0


def _name_of(place: str) -> str:
    """Return the name of a course's folder, file, address or package."""
    path = urlsplit(place).path.rstrip("/") or "/" if is_address(place) else place
    return Path(path).resolve().name.partition(".")[0] or "course"


def _chosen_before(folder: Path) -> str | None:
    """Return the list of exercises of the copy in a folder; None if there is none."""
    return load_public(folder).chosen if (folder / "exercises" / PUBLIC_COURSE).is_file() else None


def _folder_here(course: Course) -> Path | None:
    """Return the students' copy in which the command runs, if it is a copy of this course."""
    try:
        here = find_course(Path.cwd())
    except RequestError:
        return None
    is_same = bool(set(here.names) & set(course.names))
    return here.root if here.suites == "public" and is_same else None
