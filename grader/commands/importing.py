"""`grader import`: make exercises from an assignment notebook with another grader's marks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from grader.commands.assignments.exercises import Imported, NewExercise, exercises_of
from grader.commands.assignments.formats import FORMATS
from grader.commands.assignments.question import cleaned
from grader.commands.bringing import templates
from grader.commands.new import (
    TITLE,
    CoursePlace,
    can_name_module,
    find_place,
    refuse_name,
    settings_text,
)
from grader.commands.options import COURSE_FOLDER, FILE, short_path
from grader.course.course import EXERCISE_FILE, MISTAKES_FILE, UNREVIEWED
from grader.course.exercise_names import EXAMPLE
from grader.errors import RequestError
from grader.submissions.code_files import MAX_NOTEBOOK_BYTES
from grader.submissions.notebook import NotebookCell, UnreadableNotebook, read_cells

MAX_TEXT = 512 * 1024  # characters of all cells
UNREVIEWED_LINES = f"""\
# Its code came with a notebook. It runs confined until `grader trust` has shown it to you.
{UNREVIEWED}
"""
STAGE = "output"  # the return value of every call
HINTS = "TODO: at least three hints, from a question that leads to the idea to nearly the answer"
HOW = {
    "nbgrader": "give the notebook of the folder source/, with its solutions in it",
    "otter": "give the notebook that `otter assign` takes, with its solutions in it",
}


@click.command(name="import")
@click.argument("format_", metavar="FORMAT", type=click.Choice(list(FORMATS)))
@click.argument("notebook", type=FILE)
@click.option(
    "--only",
    multiple=True,
    metavar="QUESTION",
    help="Take only this question, by its name there or here. May be repeated.",
)
@click.option("--name", default="", help="Name the exercise, if there is only one.")
@COURSE_FOLDER("root")
def import_(
    format_: str, notebook: Path, only: tuple[str, ...], name: str, root: Path | None
) -> int:
    """Make exercises from a marked notebook: FORMAT is nbgrader or otter.

    Each question becomes an exercise: its text, its solution and its tests are carried
    over, and `grader validate` lists what is left to do. No code of the notebook is run;
    later commands run it confined until `grader trust` has shown it to you.
    """
    if name:
        refuse_name(name, f"--name {EXAMPLE}")
    cells = _read(notebook)
    _check_format(cells, format_, notebook)
    imported = exercises_of(FORMATS[format_].read(cells), can_name_module, only, name)
    if not imported.exercises:
        needed = "a function or a class, or a variable that a test reads"
        problem = f"{notebook}: no answer defines {needed}, which an exercise needs"
        raise RequestError(problem, "write the answer as a function, and import it again")
    place = find_place(root)
    _check_names(imported.exercises, place, notebook)
    _write(imported.exercises, place)
    _tell(imported, place)
    return 0


def _read(notebook: Path) -> tuple[NotebookCell, ...]:
    try:
        if not notebook.is_file():
            raise RequestError(f"there is no file {notebook}", HOW["nbgrader"])
        with notebook.open("rb") as file:
            data = file.read(MAX_NOTEBOOK_BYTES + 1)
        if len(data) > MAX_NOTEBOOK_BYTES:
            limit = f"{MAX_NOTEBOOK_BYTES >> 20} MiB"
            raise RequestError(f"{notebook} has more than {limit}", "take the pictures out")
        cells = [replace(cell, source=cleaned(cell.source)) for cell in read_cells(data)]
        if (language := _language(data)).lower() != "python":
            problem = f"{notebook} is for a kernel of {language}, and exercises are in Python"
            raise RequestError(problem, "write the questions in Python, and import it again")
        if sum(len(cell.source) for cell in cells) > MAX_TEXT:
            limit = f"{MAX_TEXT >> 10} KiB"
            raise RequestError(f"{notebook} holds more than {limit} of text", "split it in two")
        return tuple(cells)
    except OSError as error:
        raise RequestError(f"cannot read {notebook}: {error.strerror}", "chmod +r") from None
    except UnreadableNotebook as error:
        raise RequestError(f"{notebook} {error}", "give an .ipynb file") from None


def _language(data: bytes) -> str:
    """Return the language of a notebook's kernel; Python if it names none."""
    found = json.loads(data.decode("utf-8-sig")).get("metadata")
    about = found if isinstance(found, dict) else {}
    kernel, language = (
        each if isinstance(each := about.get(key), dict) else {}
        for key in ("kernelspec", "language_info")
    )
    if kernel.get("name") == "ir":  # older ones name no language beside it
        return "R"
    return str(kernel.get("language") or language.get("name") or "python")


def _check_format(cells: Sequence[NotebookCell], format_: str, notebook: Path) -> None:
    """Raise `RequestError` if a notebook has no marks of a format; it may have another's."""
    if any(map(FORMATS[format_].is_marked, cells)):
        return
    problem = f"{notebook} has no cell that is marked for {format_}"
    for other, reader in FORMATS.items():
        if any(map(reader.is_marked, cells)):
            remedy = f"grader import {other} {notebook}"
            raise RequestError(f"{problem}; it looks like one for {other}", remedy)
    for cell in cells:
        if "BEGIN SOLUTION" in cell.source:
            problem += f"; cell {cell.number} has `BEGIN SOLUTION`, but nothing says which cells "
            raise RequestError(f"{problem}are tests", HOW[format_])
    raise RequestError(problem, HOW[format_])


def _check_names(exercises: Sequence[NewExercise], place: CoursePlace, notebook: Path) -> None:
    """Raise `RequestError` for impossible names, before anything is written."""
    names = Counter(one.name for one in exercises)
    for one in exercises:
        cell, again = one.question.cell, f"--only {one.question.name or one.name} --name another"
        if names[one.name] > 1:
            raise RequestError(f"cell {cell}: `{one.name}` names another question, too", again)
        place.refuse_existing(one.name, again)
        for needed in one.requires:
            if needed not in names and not place.folder(needed).exists():
                says = f"cell {cell}: `{one.name}` uses `{needed}`, which is not in the course"
                raise RequestError(says, f"--only {needed} --only {one.name}")


def _write(exercises: Sequence[NewExercise], place: CoursePlace) -> None:
    made = templates("imported_files")
    if place.is_new:
        place.begin_course(points=sum(one.points for one in exercises))
    for order, one in enumerate(exercises, start=place.order):
        faults = made.get_template(f"{MISTAKES_FILE}.j2").render()
        title, requires = one.title or TITLE, one.requires
        texts = {"hints": [HINTS], **one.about}
        settings = settings_text(order, title, one.points, one.implements, STAGE, requires, texts)
        settings += UNREVIEWED_LINES
        place.write(one.name, {EXERCISE_FILE: settings, **one.texts, MISTAKES_FILE: faults})


def _tell(imported: Imported, place: CoursePlace) -> None:
    """Print what was written, what was left out, and what comes next."""
    for one in imported.exercises:
        to_do = f", {one.to_do} to be written" if one.to_do else ""
        counted = f"{_count(one.points, 'point')}, {_count(one.tests, 'hidden test')}{to_do}"
        click.echo(f"wrote {short_path(place.folder(one.name))}: {counted}")
    if imported.scale > 1:
        click.echo(f"points are whole numbers here: all are multiplied by {imported.scale}")
    if imported.left:
        click.echo("not carried over:")
        for line in imported.left:
            click.echo(f"  {line}")
    place.tell_untrusted()
    names = [one.name for one in imported.exercises]
    place.tell_lists(names)
    click.echo(f"\n  grader validate {' '.join(names)}   lists what is left to do")
    click.echo(
        "\nThe tests and solutions are code of the notebook's author. They run confined until you\n"
        f"have reviewed them: grader trust {short_path(place.reference.parent) or '.'}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
