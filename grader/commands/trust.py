"""`grader trust`: look at a course, and have its code run here as your own does."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from grader.commands.options import FOLDER, short_path
from grader.commands.trusted_courses import (
    COPY,
    CourseFiles,
    files_of,
    recognised,
    trust_contents,
    trust_folder,
)
from grader.course import records
from grader.course.course import (
    PUBLIC_COURSE,
    UNREVIEWED,
    Course,
    Exercise,
    find_course,
    packaged_course,
)
from grader.errors import GraderError, RequestError
from grader.files import write_whole
from grader.report import without_controls

MAX_LINES, MAX_ALL_LINES, MAX_WIDTH = 30, 200, 110  # of the differences that are shown
CODE_FIELDS = {"drawing": "drawing.py", "example": "example.py"}


@click.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--yes", is_flag=True, help="Trust it without being asked.")
def trust(folder: Path, yes: bool) -> int:
    """Show what a course would run here, and trust it if you say yes.

    \b
    grader trust .          the course of this folder
    grader trust . --yes    without being asked, such as for your own clone

    A course has code: tests, calls by which mistakes are told apart, drawings. That of a
    course which you did not get from the grader itself runs confined, as students' code
    does, and teachers' commands refuse it. Trusted, it runs as any program of yours.

    What is trusted are the files as they are now. If they change, you are asked again; but
    a teaching repository, with reference/, that only you can change is trusted as a folder.
    """
    root = folder.absolute()
    course = find_course(root)
    if course.root != root:
        raise RequestError(f"no course in {short_path(folder)}", f"grader trust {course.root}")
    if recognised(course).trusted:
        if imported := [each for each in course.exercises if not each.reviewed]:
            return _review(course, imported, yes=yes)
        click.echo(f"{short_path(root)} is trusted already")
        return 0
    files = files_of(course)
    if files.left_out:
        problem = f"{', '.join(files.left_out[:3])}: a link, or no file that can be read"
        raise RequestError(problem, "replace it by the file itself")
    _show(files)
    if not yes and not _confirmed(short_path(root)):
        click.echo("nothing was changed: its code runs confined")
        return 1
    if course.suites == "hidden" and trust_folder(root):
        click.echo(f"trusted: {short_path(root)}, also when its files change")
        return 0
    trust_contents(files, str(root))
    if not recognised(replace(course, trusted=False)).trusted:
        raise RequestError("this cannot be kept in your state folder", "export XDG_STATE_HOME=DIR")
    click.echo(f"trusted: {short_path(root)}, as its files are now")
    return 0


def _review(course: Course, imported: Sequence[Exercise], *, yes: bool) -> int:
    """Show what was imported into a course of the user's own, and mark it as reviewed."""
    folders = tuple(f"reference/{each.name}/" for each in imported)
    contents = files_of(course).contents
    for name, data in contents.items():
        if name.startswith(folders):
            click.echo(f"imported {_line(name)} ({len(data.splitlines())} lines): read it")
    if not yes and not _confirmed(", ".join(each.name for each in imported)):
        click.echo("nothing was changed: its code runs confined")
        return 1
    for each in imported:
        settings = each.folder / "exercise.toml"
        lines = settings.read_text("utf-8").splitlines(keepends=True)
        write_whole(settings, "".join(line for line in lines if line.strip() != UNREVIEWED))
        click.echo(f"reviewed: {each.name}")
    return 0


def _confirmed(place: str) -> bool:
    try:
        return click.confirm(f"\nRun the code of {place} as your own?", default=False)
    except click.Abort:  # nobody answers
        click.echo()
        return False


def _show(files: CourseFiles) -> None:
    """Show how the code of a course differs from that of the installed one."""
    try:
        installed = _texts(files_of(packaged_course()).contents)
    except GraderError:
        installed = {}
    here = _texts(files.contents)
    added = [name for name in here if name not in installed]
    removed = sum(name not in here for name in installed)
    changed = [name for name in here if name in installed and here[name] != installed[name]]
    for name in added:
        lines = len(here[name].splitlines())
        click.echo(f"added    {_line(name)} ({lines} lines)")
    changed.sort(key=lambda name: not name.endswith(".py"))  # first what is run
    left = MAX_ALL_LINES
    for name in changed:
        click.echo(f"changed  {_line(name)}")
        difference = list(_difference(installed[name], here[name]))
        shown = difference[: min(left, MAX_LINES)]
        for line in shown:
            click.echo(f"    {_line(line)}")
        if more := len(difference) - len(shown):
            click.echo(f"    … and {more} lines more: read the file itself")
        left -= len(shown)
    if removed:
        click.echo(f"not here {removed} files of the installed course")


def _difference(old: str, new: str) -> Iterator[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm="")
    return (line for line in lines if not line.startswith(("---", "+++")))


def _line(text: str) -> str:
    text = " ".join(without_controls(text).split("\n"))
    return text if len(text) <= MAX_WIDTH else f"{text[:MAX_WIDTH]}…"


def _texts(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return what a course executes, as texts by name: also code inside of other files."""
    texts: dict[str, str] = {}
    for name, data in contents.items():
        if name == f"{COPY}/{PUBLIC_COURSE}":
            public = json.loads(data)
            for exercise in public["exercises"]:
                for field, file in CODE_FIELDS.items():
                    if text := exercise.pop(field, ""):
                        texts[f"{name}: {exercise['name']}/{file}"] = text
                texts[f"{name}: {exercise['name']}"] = _in_lines(exercise)
            # Which exercises, and for how many points, runs nothing: a copy of a list has its own.
            texts[name] = _in_lines({"mute_imports": public.get("mute_imports", "")})
        elif name != f"{COPY}/{records.FILE}":
            texts[name] = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return texts | _probes(contents)


def _in_lines(settings: Any) -> str:
    return json.dumps(settings, indent=1, ensure_ascii=False)


def _probes(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the calls in the records, which are Python, by exercise."""
    packed = contents.get(f"{COPY}/{records.FILE}", b"")
    public = json.loads(contents.get(f"{COPY}/{PUBLIC_COURSE}", b'{"exercises": []}'))
    names = [exercise["name"] for exercise in public["exercises"]]
    return {
        f"{COPY}/{records.FILE}: {name}/{records.PROBES}": text
        for name, text in records.probes_of(packed, names).items()
    }
