"""`grader trust`: look at a course, and have its code run here as your own does."""

from __future__ import annotations

import difflib
import io
import itertools
import json
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
from msgspec import to_builtins
from msgspec.structs import asdict

from grader.commands.options import FOLDER, short_path
from grader.commands.trusted_courses import (
    COPY,
    RECORDS,
    CourseFiles,
    files_of,
    recognised,
    trust_contents,
    trust_folder,
)
from grader.course import records
from grader.course.course import (
    EXERCISE_FILE,
    PUBLIC_COURSE,
    UNREVIEWED,
    Course,
    Exercise,
    PublicCourse,
    decode_public,
    find_course,
    packaged_course,
)
from grader.errors import GraderError, RequestError
from grader.files import write_whole

MAX_ROWS, MAX_ALL_ROWS, WIDTH = 30, 200, 110  # lines shown of the differences
CODE_FIELDS = {"drawing": "drawing.py", "example": "example.py"}
ENCODINGS = ("utf-8", "utf-8-sig")  # the encoding in which files are shown


@click.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--yes", is_flag=True, help="Trust it without being asked.")
def trust(folder: Path, yes: bool) -> int:
    """Show the code that a course would run here, and trust it if you say yes.

    \b
    grader trust .          the course of this folder
    grader trust . --yes    without being asked, such as for your own clone

    A course has code: tests, calls that tell mistakes apart, drawings. If you did not get a course
    from the grader itself, its code runs confined, as students' code does, and teachers' commands
    refuse it. Once trusted, it runs like any program of yours.

    You trust the files as they are now. If they change, you are asked again; but a teaching
    repository, with reference/, that only you can change is trusted as a folder.
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
    _refuse_encodings(files)
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
    """Show the exercises imported into the user's own course, and mark them as reviewed."""
    folders = tuple(f"reference/{each.name}/" for each in imported)
    contents = files_of(course).contents
    for name, data in contents.items():
        if name.startswith(folders):
            click.echo(f"imported {_printable(name)} ({len(data.splitlines())} lines): read it")
    if not yes and not _confirmed(", ".join(each.name for each in imported)):
        click.echo("nothing was changed: its code runs confined")
        return 1
    for each in imported:
        settings = each.folder / EXERCISE_FILE
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
        lines = here[name].count("\n") + (not here[name].endswith("\n"))
        click.echo(f"added    {_printable(name)} ({lines} lines)")
    changed.sort(key=lambda name: not name.endswith(".py"))  # first the files that run
    left = MAX_ALL_ROWS
    for name in changed:
        click.echo(f"changed  {_printable(name)}")
        difference, rows = _difference(installed[name], here[name]), list[str]()
        while difference and len(rows) < min(left, MAX_ROWS):
            rows += _rows(difference.pop(0))  # no line is cut, because its end may hide code
        for row in rows:
            click.echo(f"    {row}")
        if difference:
            click.echo(f"    … and {len(difference)} lines more: read the file itself")
        left -= len(rows)
    if removed:
        count = "1 file" if removed == 1 else f"{removed} files"
        are = "is" if removed == 1 else "are"
        click.echo(f"{count} of the installed course {are} not in this one")


def _difference(old: str, new: str) -> list[str]:
    """Return the lines that differ; only line endings of Python end a line."""
    lines = difflib.unified_diff(old.split("\n"), new.split("\n"), n=1, lineterm="")
    return list(itertools.islice(lines, 2, None))  # without the names of the two files


def _rows(line: str) -> list[str]:
    """Return a line as the rows that show it."""
    text = _printable(line)
    return [text[start : start + WIDTH] for start in range(0, max(len(text), 1), WIDTH)]


def _printable(text: str) -> str:
    """Return a text with escapes for characters that are invisible or change other ones."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in text.expandtabs(4)
    )


def _refuse_encodings(files: CourseFiles) -> None:
    """Raise `RequestError` if Python would read a file as a different text than the one shown."""
    for name, data in files.contents.items():
        if name.endswith(".py"):
            try:
                encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            except SyntaxError:
                encoding = ""
            if encoding not in ENCODINGS:
                raise RequestError(f"{_printable(name)} is not in UTF-8", "save it in UTF-8")


def _texts(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the texts that a course executes, by name, including code inside other files."""
    texts: dict[str, str] = {}
    place = f"{COPY}/{PUBLIC_COURSE}"
    for name, data in contents.items():
        if name.startswith(RECORDS) and name.endswith(records.ENDING):
            texts[f"{name}: {records.CASES}"] = records.cases_in(data, name)
        elif name != place:
            text = data.decode("utf-8", "replace")
            texts[name] = text.replace("\r\n", "\n").replace("\r", "\n")
    if place not in contents:
        return texts
    public = decode_public(contents[place], Path(place))  # as it will run, not as it is stored
    return texts | _settings(public, place)


def _settings(public: PublicCourse, place: str) -> dict[str, str]:
    """Return the data of each exercise in `course.json`, and the code in it."""
    # Without exercises and points, which run nothing: a copy of a list has its own.
    texts = {place: _in_lines({"mute_imports": public.mute_imports})}
    for exercise in public.exercises:
        fields = asdict(exercise)
        for field, file in CODE_FIELDS.items():
            if text := fields.pop(field):
                texts[f"{place}: {exercise.name}/{file}"] = text
        del fields["folder"]  # a key that `course.json` cannot have
        texts[f"{place}: {exercise.name}"] = _in_lines(fields)
    return texts


def _in_lines(settings: Mapping[str, object]) -> str:
    return json.dumps(settings, indent=1, ensure_ascii=False, default=to_builtins)
