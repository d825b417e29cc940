"""`grader waive`: take a broken or unfair check out of marks that were graded already."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from grader.classroom.standings import Standings
from grader.classroom.stored.history import HistoryRow
from grader.classroom.waivers import DROP, EFFECTS, FULL, UNDONE, Waiver, doubts, store
from grader.commands.changes import MarkChange, mark_changes, summary_lines
from grader.commands.graded import (
    GRADED,
    REASON,
    confirmed,
    count_students,
    echo_review,
    graded_class,
    known_student,
    republished,
)
from grader.commands.options import COURSE, exercise_names
from grader.course.course import Course
from grader.errors import RequestError, did_you_mean
from grader.report import ExerciseResult, Outcome, WrongCase
from grader.submissions.notes import folded

USAGE = "grader waive EXERCISE CHECK --give full --reason TEXT; without CHECK, it lists the checks"
MAX_NAMED = 5  # students in a line

Results = Mapping[str, ExerciseResult]  # as they were graded, by submission


@click.command()
@click.argument("exercise", shell_complete=exercise_names)
@click.argument("what", default="", metavar="[CHECK|CASE]")
@click.option(
    "--give",
    type=click.Choice([FULL, DROP]),
    help="full: everybody gets the points of the check; drop: it counts for nobody, and the "
    "other checks are scaled to the maximum of the exercise.",
)
@click.option(
    "--for",
    "students",
    multiple=True,
    metavar="STUDENT",
    help="Only for this student. May be repeated. Default: for everybody.",
)
@REASON
@click.option("--undo", is_flag=True, help="Take the waiver back.")
@click.option("--yes", is_flag=True, help="Store it without asking.")
@GRADED
@COURSE
def waive(
    exercise: str,
    what: str,
    give: str | None,
    students: tuple[str, ...],
    why: str | None,
    undo: bool,
    yes: bool,
    folder: Path,
    course: Course,
) -> int:
    """Take a broken or unfair check, or one of its cases, out of marks that are graded already.

    \b
    grader waive layer_norm --in results/          list the checks and their wrong cases
    grader waive layer_norm test_shape --give full --reason "not in the task" --in results/
    grader waive layer_norm "One row." --give drop --reason "it was wrong" --in results/
    grader waive layer_norm test_shape --undo --in results/

    A check is named by its name or its sentence, and so is a case. If a case is waived, with full
    or drop, its check is as if that case had not been asked. A waiver counts now and after every
    regrade, also for later submissions; reports, `explain` and `history` show it. You see whose
    marks change before anything is stored.
    """
    with graded_class(course, folder) as standings:
        name = standings.course[exercise].name
        results = standings.ledger.results_of(name)
        if not results:
            raise RequestError(f"nobody's {name} is graded yet", f"grader batch --out {folder}")
        if not what:
            for line in _listed(results):
                click.echo(f"  {line}")
            return echo_review(standings.ledger)
        gives, reason = _wanted(give, why, undo=undo)
        chosen = tuple(known_student(standings, student) for student in students)
        waiver = Waiver(name, *_found(name, what, results), gives, reason, chosen)
        return _waive(standings, waiver, results, folder, yes=yes)


def _wanted(give: str | None, why: str | None, *, undo: bool) -> tuple[str, str]:
    """Return what the waiver gives, and why."""
    if undo and give:
        raise RequestError("--undo takes a waiver back, and gives nothing", "leave out --give")
    if not undo and not give:
        raise RequestError("what does everybody get?", "--give full, or --give drop")
    if not undo and not why:
        raise RequestError("a waiver needs a reason, which students read", "--reason TEXT")
    return give or UNDONE, why or "taken back"


# --- checks and cases by name ---------------------------------------------------------------------


def _checks(results: Results) -> dict[str, Outcome]:
    return {test.name: test for result in results.values() for test in result.tests}


def _cases(results: Results) -> dict[str, tuple[WrongCase, str]]:
    """Return every case that somebody has wrong, with its check, by name."""
    tests = [test for result in results.values() for test in result.tests]
    return {case.name: (case, test.name) for test in tests for case in test.wrong}


def _listed(results: Results) -> Iterator[str]:
    """Yield a line for each check and each wrong case, with how many submissions have it wrong."""
    tests = [test for result in results.values() for test in result.tests]
    failed = Counter(test.name for test in tests if test.outcome != "passed")
    wrong = Counter(case.name for test in tests for case in test.wrong)
    checks, cases = _checks(results), _cases(results)
    yield f"points  wrong  of {len(results)}"
    for name, check in checks.items():
        yield f"{check.max_points:>6}  {failed[name]:>5}  {name}: {check.sentence}"
        for case, _ in filter(lambda each: each[1] == name, cases.values()):
            yield f"{wrong[case.name]:>13}    {case.name}: {case.sentence}"


def _found(exercise: str, what: str, results: Results) -> tuple[str, str, str]:
    """Return the check and the case (or nothing) that are called so, and how to name them."""
    checks, cases = _checks(results), _cases(results)
    found = [
        *((name, "", check.sentence) for name, check in checks.items()),
        *((test, name, case.sentence) for name, (case, test) in cases.items()),
    ]
    own = [each for each in found if what in (each[1] or each[0], each[2])]
    own = own or [each for each in found if not each[1] and each[0] == f"test_{what}"]
    listing = f"grader waive {exercise} lists its checks, and the cases that somebody has wrong"
    if not own:
        meant = did_you_mean(what, [*checks, *cases])
        raise RequestError(f"{exercise} has no check or wrong case `{what}`{meant}", listing)
    if len(own) > 1:
        names = " and ".join(case or test for test, case, _ in own)
        raise RequestError(f"{names} have this sentence: which of them?", listing)
    test, case, sentence = own[0]
    return test, case, f"the {'case' if case else 'check'} “{sentence}”"


# --- the waiver -----------------------------------------------------------------------------------


def _waive(
    standings: Standings, waiver: Waiver, results: Results, folder: Path, *, yes: bool
) -> int:
    """Store a waiver after showing its effect, and publish the marks that it changes."""
    _refuse_idle(standings, waiver, results)
    before = {
        each.report.submission: each.published(standings.rules) for each in standings.graded()
    }
    with standings.ledger.writing():  # nothing is stored if it is not confirmed
        store(standings.ledger, waiver)
        effect = "no longer waived" if not waiver.gives else _effect(waiver)
        said = f"{waiver.exercise}: {waiver.says} {effect}: {waiver.why}"
        for student in waiver.students or ("",):
            standings.ledger.remember(HistoryRow("adjustment", said, student))
        after = replace(standings)  # which reads the waivers again
        changes = list(mark_changes(after, before.get))
        whom = folded(list(waiver.students), MAX_NAMED) if waiver.students else "everybody"
        click.echo(f"  {said} (for {whom})")
        falls = _falling(changes) if waiver.gives == DROP else ()
        for line in (*summary_lines(changes), *falls, *_doubted(after, waiver, folder)):
            click.echo(f"  {line}")
        if not (yes or confirmed("Keep this?", otherwise=True)):
            raise click.Abort
    students = [each.student for each in changes if waiver.concerns(each.student)]
    published = republished(after, folder, students, "waived" if waiver.gives else "unwaived")
    if published:
        click.echo(f"  published: {count_students(len(published))}")
    return echo_review(standings.ledger)


def _effect(waiver: Waiver) -> str:
    return EFFECTS[DROP] if waiver.case else EFFECTS[waiver.gives]


def _refuse_idle(standings: Standings, waiver: Waiver, results: Results) -> None:
    """Raise `RequestError` if a waiver changes nothing, or leaves no check."""
    students = waiver.students or standings.ledger.students()
    place = waiver.exercise, waiver.test, waiver.case
    waived = [
        each
        for student in students
        for each in standings.waivers(student)
        if (each.exercise, each.test, each.case) == place
    ]
    if not waiver.gives and not waived:
        raise RequestError(f"{waiver.says} is not waived for them", USAGE)
    points = {name: check.max_points for name, check in _checks(results).items()}
    for student in students if waiver.gives == DROP and not waiver.case else ():
        own = (w.test for w in standings.waivers(student) if w.exercise == waiver.exercise)
        gone = {*own, waiver.test}
        if not any(points[name] for name in points.keys() - gone):
            message = f"without this check, nothing in {waiver.exercise} would count"
            raise RequestError(message, "--give full")


def _falling(changes: Sequence[MarkChange]) -> Iterator[str]:
    if falls := sum(change.falls for change in changes):
        yield f"{falls} of them {'falls' if falls == 1 else 'fall'}; with --give full, none does"


def _doubted(standings: Standings, waiver: Waiver, folder: Path) -> Iterator[str]:
    """Yield what the stored results do not tell, with the students, and the command that would."""
    unsure: defaultdict[str, list[str]] = defaultdict(list)
    for standing in replace(standings, waives=False).graded() if waiver.gives else ():
        report = standing.report
        own = [w for w in standings.waivers(report.submission) if w.exercise == waiver.exercise]
        for result in report.exercises:
            if result.name == waiver.exercise and waiver.concerns(report.submission):
                for why in dict.fromkeys(doubts(result, own)):
                    unsure[why].append(report.who)
    for why, students in unsure.items():
        yield f"not known from the results: {why}: {folded(students, MAX_NAMED)}"
    if unsure:
        suite = f"reference/{waiver.exercise}/test_hidden.py"
        yield f"to know it, take it out of {suite}; then grader regrade --in {folder}"
