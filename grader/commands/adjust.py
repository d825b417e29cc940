"""`grader adjust`: add points to a student's exercise or mark, or take some away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from grader.classroom.csv_files import read_lines
from grader.classroom.standings import Standing, Standings
from grader.classroom.stored.history import HistoryRow
from grader.classroom.stored.marks import FINAL, MAX_ADJUSTMENT
from grader.commands.graded import (
    GRADED,
    REASON,
    confirmed,
    echo_review,
    graded_class,
    known_student,
    republished,
    verdict_line,
)
from grader.commands.options import COURSE, FILE, exercise_names
from grader.course.course import Course
from grader.course.policy import NOT_NEGATIVE
from grader.errors import RequestError
from grader.reports.figures import amount, change

COLUMNS = ("student", "exercise", "points", "why")
EXPECTED = "a CSV file with the columns student,exercise,points,why; exercise may be `final`"
COMMA = re.compile(r"([+-]?[0-9]*),([0-9]{1,2})")  # three digits after it could be thousands
USAGE = "grader adjust STUDENT EXERCISE ±POINTS --why TEXT, or grader adjust --file CSV"


@dataclass(frozen=True)
class Request:
    """Points for a student's exercise, or for the mark itself (`FINAL`), and why."""

    student: str
    exercise: str
    points: float
    why: str


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument(
    "words", nargs=-1, metavar="STUDENT [EXERCISE] ±POINTS", shell_complete=exercise_names
)
@REASON
@click.option("--final", is_flag=True, help="Adjust the mark itself, after weights and lateness.")
@click.option("--file", type=FILE, metavar="CSV", help=f"Many at once: {EXPECTED}.")
@click.option("--force", is_flag=True, help="Allow points below 0 and above the maximum.")
@click.option("--yes", is_flag=True, help="Store it without asking.")
@GRADED
@COURSE
def adjust(
    words: tuple[str, ...],
    why: str | None,
    final: bool,
    file: Path | None,
    force: bool,
    yes: bool,
    folder: Path,
    course: Course,
) -> int:
    """Add points to a student's exercise or mark, or take some away.

    \b
    grader adjust s004 layer_norm +2 --why "right idea, one sign" --in results/
    grader adjust s004 layer_norm 0 --why "taken back" --in results/
    grader adjust s004 --final +1.5 --why "was ill" --in results/
    grader adjust --file adjustments.csv --in results/

    Points for an exercise are added to the points of its tests, before weights and lateness; with
    --final they are added to the mark itself, after both. They count now and after every regrade,
    and the student's report shows them. A new adjustment of the same exercise replaces the old
    one. You see the effect before anything is stored.
    """
    with graded_class(course, folder) as standings:
        if file is not None:
            wanted = list(_read(file, words, why, final))
        else:
            wanted = [_request(words, why, final)]
        wanted = [_known(standings, each) for each in wanted]
        with standings.ledger.writing():  # nothing is stored if any adjustment is refused
            for each in wanted:
                click.echo(f"  {_adjusted(standings, each, force)}")
            if not (yes or confirmed("Keep this?", otherwise=True)):
                raise click.Abort
        students = dict.fromkeys(each.student for each in wanted)
        for report in republished(standings, folder, students, "adjusted"):
            click.echo(verdict_line(report))
        return echo_review(standings.ledger)


def _request(words: Sequence[str], why: str | None, final: bool) -> Request:
    """Return the adjustment that the command line asks for."""
    if len(words) != (2 if final else 3):
        raise RequestError("which student, which exercise, and how many points?", USAGE)
    if not why:
        raise RequestError("an adjustment needs a reason, which the student reads", "--why TEXT")
    exercise = FINAL if final else words[1]
    return Request(words[0], exercise, _points(words[-1], ""), why)


def _points(text: str, where: str) -> float:
    """Return a number of points, with a decimal point or comma and any minus sign."""
    plain = text.replace("−", "-")
    if comma := COMMA.fullmatch(plain):
        plain = f"{comma[1]}.{comma[2]}"
    try:
        points = float(plain)
    except ValueError:
        points = float("nan")
    if not abs(points) <= MAX_ADJUSTMENT:  # NaN does not either
        raise RequestError(f"{where}{text} is not a number of points", "such as +2, -1.5 or 0")
    return points


def _read(file: Path, words: Sequence[str], why: str | None, final: bool) -> Iterator[Request]:
    """Yield the adjustments in a file; raise `RequestError` with the line of a wrong one."""
    if words or final:
        raise RequestError("--file takes students, exercises and points from the file", USAGE)
    lines = read_lines(file, "--file", EXPECTED)
    names = [name.casefold() for name in next(lines, (1, []))[1]]
    if not {*COLUMNS[:3]} <= {*names}:
        raise RequestError(f"{file}:1: a column is missing", EXPECTED)
    for number, cells in lines:
        values = dict(zip(names, cells))
        where = f"{file}:{number}: "
        reason = values.get("why") or why
        if not reason:
            raise RequestError(f"{where}there is no reason", "fill in `why`, or --why TEXT")
        exercise = values.get("exercise", "")
        exercise = FINAL if exercise.casefold() == "final" else exercise
        points = _points(values.get("points", ""), where)
        yield Request(values.get("student", ""), exercise, points, reason)


def _known(standings: Standings, wanted: Request) -> Request:
    """Return the request if its student and exercise exist; raise `RequestError` otherwise."""
    if wanted.exercise != FINAL:
        _ = standings.course[wanted.exercise]
    return replace(wanted, student=known_student(standings, wanted.student))


def _adjusted(standings: Standings, wanted: Request, force: bool) -> str:
    """Store an adjustment; return its effect in words. Raise `RequestError` beyond the range."""
    before = standings.standing(wanted.student)
    standings.ledger.adjust(wanted.student, wanted.exercise, wanted.points, wanted.why)
    said = f"{_what(wanted)} {change(wanted.points)}: {wanted.why}"
    standings.ledger.remember(HistoryRow("adjustment", said, wanted.student))
    after = standings.standing(wanted.student)
    if before is None or after is None:
        published, waits = standings.ledger.published(wanted.student), "not graded yet"
        if published is not None:
            mark = f"{amount(published.points)} of {amount(published.max_points)}"
            waits = f"which counts after grader regrade; the published mark is still {mark}"
        return f"{wanted.student}: {_what(wanted)} {change(wanted.points)}, {waits}"
    if not force and wanted.points and (beyond := _beyond(after, wanted)):
        raise RequestError(f"{wanted.student} would get {beyond}", "--force allows it")
    return _effect(before, after, wanted)


def _what(wanted: Request) -> str:
    return "the mark" if wanted.exercise == FINAL else wanted.exercise


def _beyond(after: Standing, wanted: Request) -> str:
    """Return the points after an adjustment, in words, if they are below 0 or above the maximum."""
    report = after.report
    if wanted.exercise != FINAL:
        (result,) = (each for each in report.exercises if each.name == wanted.exercise)
        is_allowed = 0 <= result.counted <= result.max_points
        said = f"{amount(result.counted)} of {result.max_points} points in {result.name}"
        return "" if is_allowed else said
    if report.mark and report.mark.steps and report.mark.steps[-1].says == NOT_NEGATIVE:
        return "a mark below 0"
    said = f"{amount(report.counted)} of {amount(report.max_counted)} points"
    return "" if report.counted <= report.max_counted else said


def _effect(before: Standing, after: Standing, wanted: Request) -> str:
    """Return the effect of an adjustment on the points of the exercise and on the mark."""
    where = "counts in the mark itself"
    if wanted.exercise != FINAL:
        old, new = (
            next(each for each in standing.report.exercises if each.name == wanted.exercise)
            for standing in (before, after)
        )
        where = f"{amount(old.counted)} → {amount(new.counted)} of {new.max_points} points there"
    marks = f"{amount(before.report.counted)} → {amount(after.report.counted)}"
    head = f"{after.report.who}: {_what(wanted)} {change(wanted.points)}, {where}"
    return f"{head}; mark {marks} of {amount(after.report.max_counted)}"
