"""Shared by the commands that pass on published marks: the marks, and where they may be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from grader.classroom.gradebooks import ExercisePoints, Filled, StudentMark
from grader.classroom.intake import ROSTER
from grader.classroom.publishing import writing
from grader.classroom.roster import Roster
from grader.classroom.standings import Standing, Standings
from grader.classroom.stored.marks import PublishedMark
from grader.course.visibility import after_due, for_student
from grader.errors import RequestError
from grader.files import read_bounded
from grader.report import Report
from grader.submissions.layouts import Attempt
from grader.submissions.notes import folded

T = TypeVar("T")
MAX_GRADEBOOK_BYTES = 64 << 20
MAX_LISTED = 20  # students, in a line


def published_standings(
    standings: Standings, waiting: list[str] | None = None
) -> Iterator[Standing]:
    """Yield every student's standing; raise `RequestError` if one differs from its published mark.

    Students with damaged data are left out and named for review. If damaged data does not say
    whose it was, the same holds for every student whose mark differs from the published one.
    Students without a published mark are added to `waiting`, if it is given.
    """
    ledger = standings.ledger
    students, stale = ledger.students(), []
    unknown = ledger.damage("") if standings.is_as_published else ()
    for student in students:
        standing, old = standings.spared(student), ledger.published(student)
        if standing and old and not differs(old, standing.published(standings.rules)):
            yield standing
        elif damage := ledger.damage(student) or unknown:
            ledger.review.add(student, f"{damage[0]}, and the mark is not exported")
        elif student in ledger.review.reasons:
            continue
        elif waiting is not None and old is None:
            waiting.append(student)
        else:
            stale.append(student)
    if stale:
        who = folded([ledger.named(student) for student in stale], 5)
        raise RequestError(
            f"the marks of these students are not published as they stand now: {who}",
            "grader regrade   shows what has changed, and publishes it",
        )
    if not students:
        raise RequestError("nobody was graded here", "grader batch SUBMISSIONS --out DIR")


def differs(old: PublishedMark, new: PublishedMark) -> bool:
    """Whether a mark is another one than the published, or made under other rules."""
    of_old, of_new = ((mark.rules, mark.seed, mark.points, mark.exercises) for mark in (old, new))
    return of_old != of_new


def spared_each(
    standings: Standings, published: list[Standing], make: Callable[[Standings, Standing], T]
) -> Iterator[tuple[str, T]]:
    """Yield each student with the result of `make`; name the students for whom it fails."""
    for standing in published:
        student, made = standing.report.submission, []
        with standings.ledger.review.errors_of(student):
            made.append((student, make(standings, standing)))
        yield from made


def visible(standings: Standings, standing: Standing, *, later: bool = False) -> Report:
    """Return a report as its student may see it now, or after the due date."""
    view = after_due if later else for_student
    return view(standing.report, standings.course.policy)


def class_marks(
    standings: Standings,
    published: list[Standing],
    comment: Callable[[Standings, Standing], str] = lambda standings, standing: "",
) -> Iterator[StudentMark]:
    """Yield the mark of every student as gradebooks take it, with a comment.

    Those who handed in nothing are among them if the course gives 0 for that.
    """
    roster = Roster.from_setting(standings.ledger.get(ROSTER))
    for _, mark in spared_each(standings, published, partial(_mark, roster, comment)):
        yield mark
    for one in standings.missing():
        if one.points is not None:
            nothing = (
                ExercisePoints(each.name, each.title, 0, each.points)
                for each in standings.course.exercises
            )
            counted = one.points, one.max_points
            yield StudentMark(one.submission, one.person, *counted, tuple(nothing))


def _mark(
    roster: Roster,
    comment: Callable[[Standings, Standing], str],
    standings: Standings,
    standing: Standing,
) -> StudentMark:
    report = standing.report
    exercises = (
        ExercisePoints(each.name, each.title, each.counted, each.max_points)
        for each in report.exercises
    )
    row = roster.find(Attempt(report.submission, (), person=report.person))
    return StudentMark(
        *(report.submission, report.person, report.counted, report.max_counted),
        tuple(exercises),
        comment(standings, standing),
        row.student if row else "",
    )


def read_gradebook(path: Path) -> bytes:
    """Return a downloaded gradebook; raise `RequestError` if it cannot be read."""
    try:
        return read_bounded(path, MAX_GRADEBOOK_BYTES)
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}") from None


@dataclass(frozen=True)
class Choice:
    """The choices for a gradebook: its columns, its scale, and its students."""

    column: str | None = None
    scale: bool = False
    per_exercise: bool = False
    skip_unmatched: bool = False


def write_filled(filled: Filled, output: Path, gradebook: Path, folder: Path) -> Iterator[str]:
    """Write a filled gradebook beside its original; yield lines on the result."""
    refuse_overwriting(output, gradebook, folder=folder)
    with writing(output) as file:
        file.buffer.write(filled.data)
    columns = "columns" if ", " in filled.column else "column"
    yield f"{filled.written} marks in {columns} {filled.column}: {output}"
    for what, students in (
        ("left as they were", filled.without),
        ("excused, and left as they were", filled.excused),
        ("with a comment already, which was left as it was", filled.commented),
        ("in no row of the gradebook, and left out", filled.unmatched),
        ("found by a number without the 0 at its start", filled.guessed),
    ):
        if students:
            yield f"{what}, {len(students)}: {folded(students, MAX_LISTED)}"


def refuse_overwriting(output: Path, *sources: Path, folder: Path, force: bool = True) -> None:
    """Raise `RequestError` if writing a file would destroy data.

    Such files are the command's inputs, the ledger of the class in `folder`, and, without `force`,
    any existing file.
    """
    if any(_is_same(output, source) for source in sources):
        message = f"{output} is in use by this command, so it is not overwritten"
        raise RequestError(message, "give another file to write")
    if output.name.startswith("ledger.") and _is_same(output.parent, folder):
        message = f"{output} belongs to the ledger of this class"
        raise RequestError(message, "give another file to write")
    if not force and output.exists():
        raise RequestError(f"{output} exists already", "--force replaces it")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return one.absolute() == other.absolute()
