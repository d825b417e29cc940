"""`grader history` and `grader explain`: the changes of a mark, and its calculation."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from grader.classroom.standings import Standing, Standings
from grader.classroom.stored.history import HistoryRow
from grader.classroom.stored.marks import PublishedMark
from grader.classroom.stored.submissions import AttemptRow
from grader.classroom.waivers import Waiver
from grader.commands.graded import GRADED, echo_review, graded_class, known_student
from grader.commands.options import COURSE, exercise_names
from grader.commands.published import differs
from grader.course.course import Course
from grader.course.policy import delay_in_words
from grader.errors import RequestError
from grader.report import ExerciseResult, Mark, Report
from grader.reports.charges import checks_line, scaled_line, sum_line
from grader.reports.figures import amount, change, moment
from grader.reports.text import describe_state, mark_lines

WIDTH = 79
SIGNS = {"passed": "✓", "failed": "✗", "skipped": "–", "error": "!"}


@click.command()
@click.argument("student", default="")
@GRADED
@COURSE
def history(student: str, folder: Path, course: Course) -> int:
    """Show what changed the marks of a class, or of one student, when and why.

    \b
    grader history --in results/           of the whole class
    grader history s004 --in results/      of one student

    Every published change has an entry: marks, rosters, rules, adjustments, and students who are
    gone.
    """
    with graded_class(course, folder) as standings:
        rows = standings.ledger.history(student)
        if student and not any(row.student for row in rows):
            student = known_student(standings, student)
            rows = standings.ledger.history(student)
        before: dict[str, float] = {}
        for row in rows:
            click.echo(f"  {_entry(standings, row, before)}")
        if not rows:
            click.echo("  nothing was published yet")
        return echo_review(standings.ledger)


def _entry(standings: Standings, row: HistoryRow, before: dict[str, float]) -> str:
    """Return an entry as a line; `before` has each student's mark until then."""
    who = standings.ledger.named(row.student) if row.student else "the class"
    what = {"rules": "rules", "roster": "roster", "gone": "gone"}.get(row.what, "")
    if row.what == "mark":
        old = before.get(row.student)
        what = f"{'new' if old is None else amount(old)} → {amount(row.points)}"
        what = f"{what} of {amount(row.max_points)}"
        before[row.student] = row.points
    if row.what == "gone":
        before.pop(row.student, None)
    parts = (_when(standings, row.at), who, what or row.what)
    return f"{'  '.join(parts)}: {row.why}"


def _when(standings: Standings, at: str) -> str:
    """Return a time of the ledger in the course's zone, or in this machine's."""
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        return at
    return moment(when.astimezone(standings.course.policy.zone).isoformat())


@click.command()
@click.argument("student")
@click.argument("exercise", default="", shell_complete=exercise_names)
@GRADED
@COURSE
def explain(student: str, exercise: str, folder: Path, course: Course) -> int:
    """Show how a mark came about, line by line.

    \b
    grader explain s004 --in results/              the whole mark
    grader explain s004 layer_norm --in results/   one exercise, check by check

    It goes from the files that were handed in to the exported number, and names the command that
    repeats the grading.
    """
    with graded_class(course, folder) as standings:
        student = known_student(standings, student)
        standing = standings.spared(student)
        chosen = [course[exercise].name] if exercise else []
        if standing is None:
            lines = _told_before(standings, student, chosen, folder)
        else:
            lines = _explained(standings, standing, chosen, folder)
        for line in lines:
            click.echo(f"  {line}".rstrip())
        return echo_review(standings.ledger)


def _told_before(
    standings: Standings, student: str, chosen: list[str], folder: Path
) -> Iterator[str]:
    """Yield the published data of a mark that cannot be computed at the moment.

    Raise `RequestError` if nothing is published.
    """
    ledger, again = standings.ledger, f"grader regrade --in {folder}"
    published = ledger.published(student)
    if published is None:
        raise RequestError(f"{student} has attempts that are not graded yet", again)
    yield ledger.named(student)
    yield _line("published", _told(standings, student, published))
    for name, points in published.exercises.items():
        if not chosen or name in chosen:
            yield _line("", f"{name}: {amount(points)} points")
    why = "an attempt is not graded yet"
    if published.rules != standings.rules:
        why = f"it was graded under other rules; changed since: {standings.changed_rules}"
    yield _line("now", f"nothing more can be said, because {why}")
    yield _line("up to date", f"{again} shows who changes, before anything is published")


def _explained(
    standings: Standings, standing: Standing, chosen: list[str], folder: Path
) -> Iterator[str]:
    """Yield how a mark came about; if exercises are chosen, only for those."""
    report = standing.report
    yield report.who
    yield from _unpublished(standings, standing, folder)
    yield from _handed_in(standings, standing)
    yield from _conditions(standings, standing)
    results = [each for each in report.exercises if not chosen or each.name in chosen]
    for result in results:
        yield ""
        own = [w for w in standings.waivers(report.submission) if w.exercise == result.name]
        before = _as_graded(standings, report, result.name) if own else None
        yield from _exercise(result, before, own, with_checks=bool(chosen))
    if not chosen:
        yield from _sum(standing)
        yield from _published(standings, standing, folder)


def _handed_in(standings: Standings, standing: Standing) -> Iterator[str]:
    report, ledger = standing.report, standings.ledger
    rows = ledger.all_attempts(report.submission)
    (row,) = (standings.with_extra(row) for row in rows if row.number == report.attempt)
    when = moment(report.submitted) if report.submitted else "at a time that is not known"
    yield _line("handed in", when)
    if len(rows) > 1:
        rule = "the latest" if standings.which == "all" else f"the {standings.which}"
        yield _line("attempt", f"{report.attempt} of {len(rows)}: {rule} counts")
    yield _line("files", ", ".join(sorted(row.paths.values())) or "none that count")
    yield _line("their hash", row.hash)
    for note in dict.fromkeys((*row.problems.values(), *row.notes, *report.flags)):
        yield _line("", note)
    yield _line("due", _due(standings, row))
    if report.mark and report.mark.free_left is not None:
        yield _line("free days", _budget(standings, report.submission, report.mark))


def _due(standings: Standings, row: AttemptRow) -> str:
    """Return the due date of a submission, and the rule that makes it late."""
    policy = standings.course.policy
    due = row.due or policy.due
    if due is None:
        return "never"
    whose = "an extension" if row.due else "the course's"
    if (listed := standings.listed(row)) and listed.extra:
        whose = f"the course's with {listed.extra} of extra time"
    days = policy.days_late(row.submitted, row.due)
    late = f"; {delay_in_words(days)}" if days else "; in time" if row.submitted else ""
    return f"{moment(due.astimezone(policy.zone).isoformat())} ({whose}){late}"


def _budget(standings: Standings, student: str, mark: Mark) -> str:
    """Return how many late days cost nothing, who used them, and how many are left."""
    before = standings.free_days_used.get(student, 0.0)
    spent = f"{amount(before)} used in earlier assignments, {amount(mark.free_days)} here"
    return f"{amount(standings.course.policy.budget)}: {spent}, {amount(mark.free_left or 0)} left"


def _conditions(standings: Standings, standing: Standing) -> Iterator[str]:
    report = standing.report
    yield _line("the course", f"{standings.course.title}, {standings.course.hash}")
    yield _line("seed", str(report.seed))
    yield _line("versions", ", ".join(f"{k} {v}" for k, v in report.versions.items()))
    yield _line("confinement", ", ".join(report.confinement) or "none")


def _exercise(
    result: ExerciseResult,
    graded: ExerciseResult | None,
    waivers: Sequence[Waiver],
    *,
    with_checks: bool,
) -> Iterator[str]:
    """Yield the points of an exercise, and their origin; `graded` is without its `waivers`."""
    state = describe_state(result)
    yield f"{result.name}: {result.points} of {result.worth} points, {state}"
    if result.advice:
        yield _line("", result.advice)
    for test in result.tests if with_checks else ():
        points = f"{test.points}/{test.max_points}"
        yield f"  {SIGNS[test.outcome]} {points:>5}  {test.sentence}"
        if test.waived:
            yield f"{'':11}{test.waived}"
        if test.is_wrong and test.message:
            indent = " " * 11
            yield from textwrap.wrap(
                test.message, WIDTH, initial_indent=indent, subsequent_indent=indent
            )
    for line in filter(None, (checks_line(result), sum_line(result), scaled_line(result))):
        yield _line("", line)
    for waiver in waivers:
        yield _line("waived", f"{waiver.says}: {waiver.why}")
    if waivers and graded is not None:
        points = f"{amount(graded.points)} of {graded.max_points}"
        yield _line(
            "", f"{points} points as graded, {amount(result.points + result.scaled_by)} now"
        )
    if result.adjustment:
        counted = amount(result.counted)
        by = change(result.adjustment.points)
        yield _line("adjusted", f"{by} = {counted}: {result.adjustment.why}")


def _as_graded(standings: Standings, report: Report, exercise: str) -> ExerciseResult | None:
    """Return an exercise of the attempt that counts, without what is waived."""
    standing = replace(standings, waives=False).standing(report.submission)
    each = (standing.report, *standing.others) if standing else ()
    found = (one for one in each if one.attempt == report.attempt)
    return next((r for one in found for r in one.exercises if r.name == exercise), None)


def _sum(standing: Standing) -> Iterator[str]:
    """Yield the sum of the mark: the sum of the points, unless something changes it."""
    mark = standing.report.mark
    if mark is not None and mark.steps:
        yield from (line.removeprefix("  ") for line in mark_lines(mark))
        return
    points = [amount(result.counted) for result in standing.report.exercises]
    yield ""
    yield f"the mark: {' + '.join(points)} = {amount(standing.report.counted)}"


def _unpublished(standings: Standings, standing: Standing, folder: Path) -> Iterator[str]:
    """Yield how the mark that is told here differs from the one that is published."""
    published = standings.ledger.published(standing.report.submission)
    now = amount(standing.report.counted)
    if published is None:
        yield _line("unpublished", f"{now} points, which nobody was told yet")
    elif differs(published, standing.published(standings.rules)):
        before = f"{amount(published.points)} of {amount(published.max_points)}"
        why = "" if standings.is_as_published else f", after a change of {standings.changed_rules}"
        yield _line("unpublished", f"{now} points as told here{why}; published is {before}")
        yield _line("", f"grader regrade --in {folder} shows who changes, and publishes it")


def _published(standings: Standings, standing: Standing, folder: Path) -> Iterator[str]:
    """Yield the numbers that students and other tools got, and the command that grades again."""
    student = standing.report.submission
    published = standings.ledger.published(student)
    told = "nothing yet" if published is None else _told(standings, student, published)
    yield ""
    yield _line("published", told)
    if published is not None:
        exported = f"{amount(published.points)} in grades.csv"
        if not differs(published, standing.published(standings.rules)):
            exported = f"{amount(published.points)} by grader export, and in grades.csv"
        yield _line("exported", exported)
    yield _line("again", f"grader regrade --again {student} --in {folder}")


def _told(standings: Standings, student: str, published: PublishedMark) -> str:
    last = standings.ledger.last_mark(student)
    since = f" since {_when(standings, last.at)}: {last.why}" if last else ""
    return f"{amount(published.points)} of {amount(published.max_points)}{since}"


def _line(what: str, text: str) -> str:
    return f"  {what:<12}{text}"
