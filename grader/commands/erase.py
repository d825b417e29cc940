"""`grader erase`: erase everything that is stored about one student."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from grader.classroom.erasing import Erased, still_naming
from grader.classroom.erasing import erase as erase_from
from grader.classroom.ledger import Ledger
from grader.commands.graded import GRADED, confirmed, echo_review, graded_class, students_called
from grader.commands.options import COURSE, short_path
from grader.course.course import Course
from grader.errors import RequestError, did_you_mean
from grader.submissions.notes import folded

MAX_NAMED = 20  # files in a sentence
ROWS = {  # the names of the tables' rows, for teachers
    "attempts": "attempts",
    "submissions": "sets of files",
    "results": "results",
    "published": "published marks",
    "adjustments": "adjustments",
    "history": "entries of the history",
    "missing": "lines among those who handed in nothing",
    "remarks": "remarks for review",
}


@click.command()
@click.argument("student")
@click.option("--yes", is_flag=True, help="Erase it without asking.")
@GRADED
@COURSE
def erase(student: str, yes: bool, folder: Path, course: Course) -> int:
    """Erase everything that is stored about one student, for good.

    \b
    grader erase s004 --in results/
    grader erase s004 --in results/ --yes       without a question

    Files, results, marks, adjustments, history, pages and the line of the roster are
    erased, and no byte of them stays in the ledger. The lists and the dashboard are
    written again without the student; marks and pages of other students stay as they
    are. Exports and feedback in the folder are removed, because they hold the whole
    class.
    """
    with graded_class(course, folder) as standings:
        student = _known(standings.ledger, student)
        person = standings.ledger.person(student)
        click.echo(f"  {person.beside(student)}: everything stored in {short_path(folder)}")
        if not (yes or confirmed("Erase it for good?", otherwise=False)):
            raise RequestError("nothing was erased", "--yes erases without a question")
        for line in _said(erase_from(standings, folder, student), folder):
            click.echo(f"  {line}")
        names = (student, person.name, person.login, person.email, person.number)
        for line in _left(folder, names):
            click.echo(f"  {line}")
        return echo_review(standings.ledger)


def _known(ledger: Ledger, name: str) -> str:
    """Return the id of a student, given it or the name; raise `RequestError` if nobody has it."""
    students = ledger.known()
    if name in students:
        return name
    found = students_called(ledger, students, name)
    if len(found) != 1:
        why = "several students are" if found else "nobody is"
        raise RequestError(
            f"{why} called `{name}` here{did_you_mean(name, students)}", "give the id"
        )
    return found[0]


def _said(done: Erased, folder: Path) -> Iterator[str]:
    """Yield lines on what was erased in a folder."""
    rows = [f"{what}: {done.rows[table]}" for table, what in ROWS.items() if table in done.rows]
    lines = [f"lines of the roster and the groups: {done.lines}"] if done.lines else []
    pages = [f"pages: {len(done.pages)}"] if done.pages else []
    yield f"erased from {short_path(folder)}: {', '.join([*rows, *lines, *pages]) or 'nothing'}"
    if done.removed:
        yield f"removed: {', '.join(done.removed)}"
    if done.rewritten:
        yield f"written again: {', '.join(done.rewritten)}"
    if done.stale:
        others = f", and the reports of {folded(done.told)}" if done.told else ""
        yield f"the course or the software has changed: the dashboard{others} must be made again"
        yield f"    grader regrade --in {folder}"
    elif done.told:
        yield f"written again, because they named the student: the reports of {folded(done.told)}"
    if not done.purged:
        yield "another program reads the ledger, whose log may still hold what was erased:"
        yield f"    end that program, and any grader command on {folder} clears it"


def _left(folder: Path, names: tuple[str, ...]) -> Iterator[str]:
    """Yield lines on what this command cannot erase."""
    if files := still_naming(folder, *names):
        yield f"these still name the student; remove them yourself: {folded(files, MAX_NAMED)}"
    yield "kept: a salted hash of the id, so that grader batch knows who was erased"
    yield "not erased, because it is elsewhere:"
    yield "    the submissions: grader batch takes none in while they hold this student's files"
    yield "    rosters, exported gradebooks, feedback that was returned, mails, logs, backups"
