"""`grader overview`: the assignments of a term on one page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from grader.classroom.publishing import writing
from grader.classroom.roster import NO_ROSTER, read_roster
from grader.classroom.storage import FILE as LEDGER
from grader.classroom.term import FAR, read_assignment, summarise
from grader.commands.graded import count_students
from grader.commands.options import FILE, FOLDER, PATH, short_path
from grader.errors import RequestError
from grader.reports.dashboard import percent, render_term
from grader.reports.platforms.grades import write_term
from grader.reports.summary import TermSummary
from grader.submissions.notes import shortened

PAGE, TABLE = "overview.html", "overview.csv"
MAX_LISTED = 10  # students or mistakes on the terminal


@click.command()
@click.argument("results", type=PATH, nargs=-1, required=True)
@click.option(
    "--out",
    type=FOLDER,
    metavar="DIR",
    help="The folder for the page and the table. Default: the one that holds the results.",
)
@click.option(
    "--roster",
    type=FILE,
    metavar="CSV",
    help="The students of the term, such as those on the latest roster. Default: everybody who is "
    "in one of the results.",
)
def overview(results: tuple[Path, ...], out: Path | None, roster: Path | None) -> int:
    """Show a term on one page: each student's marks and late days, who falls behind, and
    mistakes that come back.

    \b
    grader overview results/*                 results/hw1, results/hw2 and so on
    grader overview hw1 hw2 --out term        in this order, into another folder

    RESULTS are folders that `grader batch` wrote. overview.html is the page, overview.csv the
    table for a spreadsheet. Students are found by id, login, e-mail or number, else by name.
    Everything shown is published; no mark changes.
    """
    folders = _in_order([path for path in results if _is_graded(path)])
    if not folders:
        raise RequestError("no class was graded into any of these", "grader overview results/*")
    out = out or Path(os.path.commonpath([folder.absolute().parent for folder in folders]))
    names = _names(folders)
    assignments = [read_assignment(*each) for each in zip(names, folders)]
    term = summarise(assignments, out, read_roster(roster) if roster else NO_ROSTER)
    with writing(out / PAGE) as file:
        file.write(render_term(term, FAR))
    with writing(out / TABLE) as file:
        write_term(file, term)
    for line in _lines(term):
        click.echo(f"  {line}")
    click.echo(f"\n  the term, opens on a double click: {short_path(out / PAGE)}")
    click.echo(f"  for a spreadsheet: {short_path(out / TABLE)}")
    return 0


def _is_graded(path: Path) -> bool:
    """Return whether a path is a results folder; name any other folder, which a pattern can hit."""
    if not path.exists():
        raise RequestError(f"there is no {path}", "grader overview results/*")
    if path.is_dir() and not (path / LEDGER).is_file():
        click.echo(f"  left out: no class was graded into {path}", err=True)
    return path.is_dir() and (path / LEDGER).is_file()


def _in_order(folders: list[Path]) -> list[Path]:
    """Return the folders in the order given, but hw2 before hw10 if a shell has sorted them."""

    def with_numbers(folder: Path) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", str(folder))
        return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]

    return sorted(folders, key=with_numbers) if folders == sorted(folders) else folders


def _names(folders: Sequence[Path]) -> list[str]:
    """Return the name of each folder, with those above it if names would be equal."""
    paths = [folder.resolve() for folder in folders]
    if len(set(paths)) < len(paths):
        raise RequestError("a folder of results is named twice", "name it once")
    names = [path.name for path in paths]
    if len(set(names)) == len(names):
        return names
    top = os.path.commonpath(paths)
    return [str(path.relative_to(top)) for path in paths]


def _lines(term: TermSummary) -> Iterator[str]:
    """Yield what the page says, in short."""
    yield f"{count_students(len(term.students))} in {len(term.exercises)} assignments"
    width = max(len(each.name) for each in term.exercises)
    for each in term.exercises:
        mean = "nobody has a mark" if each.mean is None else f"mean {percent(each.mean, 1)}"
        handed_in = f"{each.handed_in} of {each.students} handed in"
        yield f"{each.name:<{width}}  {handed_in}, {mean}, {each.late} late"
    yield f"falling behind: {count_students(len(term.behind))}"
    rows = [term.students[at] for at in term.behind]
    named = [row.id if row.name in ("", row.id) else f"{row.id} ({row.name})" for row in rows]
    for line in shortened(
        [f"{who}: {'; '.join(row.flags)}" for who, row in zip(named, rows)], MAX_LISTED
    ):
        yield f"  {line}"
    yield f"mistakes that come back: {len(term.mistakes)}"
    repeated = [
        f"{each.fault}: {count_students(len(each.who))}, {', '.join(name for name, _ in each.made)}"
        for each in term.mistakes
    ]
    for line in shortened(repeated, MAX_LISTED):
        yield f"  {line}"
    for remark in term.remarks:
        yield f"! {remark}"
