"""`grader batch`: grade a class."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any, get_args

import click

from grader.classroom.erasing import come_back, take_back
from grader.classroom.intake import (
    GROUPS,
    ROSTER,
    Intake,
    IntakeRequest,
    Kept,
    Which,
    open_intake,
    remembered,
)
from grader.classroom.late_budget import free_days_used, remember_earlier, store_used
from grader.classroom.ledger import Ledger, open_ledger
from grader.classroom.publishing import DASHBOARD, GRADES, REPORTS, Publisher
from grader.classroom.replaced_marks import Replacement, published_attempts, replacements
from grader.classroom.run import Engine, grade_class
from grader.classroom.standings import LATER, Standings
from grader.classroom.storage import existing
from grader.classroom.stored.history import HistoryRow
from grader.commands.graded import (
    CLUSTER,
    JOBS,
    LIST,
    SECRET,
    class_secret,
    count_students,
    echo_review,
    engine_for,
    list_in,
    seed_in_words,
    verdict_line,
    with_list,
)
from grader.commands.options import (
    COURSE,
    FILE,
    FOLDER,
    PATH,
    SEED,
    exercise_names,
    exit_code,
    isolation_option,
    progress_bar,
    refuse_handed_in,
    short_path,
)
from grader.commands.progress import ProgressDisplay
from grader.course.course import Course
from grader.course.policy import delay_in_words
from grader.errors import RequestError
from grader.files import open_private
from grader.grading.seeds import fresh_secret
from grader.sandbox.confinement.limits import Isolation
from grader.submissions.layouts import LAYOUTS
from grader.submissions.notes import folded, shortened

MAX_LISTED = 30  # files named of those left out
MAX_NAMED = 5  # students named in a sentence


@click.command()
@click.argument("submissions", type=PATH, required=False)
@click.option(
    "--out",
    type=FOLDER,
    metavar="DIR",
    help="The folder for the reports, the marks, the dashboard and the ledger.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be graded for whom, and stop.")
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    help="The platform that it was downloaded from. Default: recognised.",
)
@click.option(
    "--roster",
    type=FILE,
    metavar="CSV",
    help="The class: a line for each student (id, name, email, section, due, …).",
)
@click.option(
    "--groups",
    type=FILE,
    metavar="CSV",
    help="Who hands in together: a line for each student (group, id). One hand-in counts for all.",
)
@click.option(
    "--attempt",
    type=click.Choice(get_args(Which)),
    help="Which of several attempts counts; `all` grades each, and the latest counts. "
    "Default: latest, or what was said for DIR before.",
)
@click.option(
    "--no-roster",
    is_flag=True,
    help="Forget the roster and the groups that were given for DIR before.",
)
@click.option(
    "--replace",
    "replaces",
    is_flag=True,
    help="Take the submissions even if published marks change or go.",
)
@click.option(
    "--before-due/--no-before-due",
    default=None,
    help="Of git clones, grade the last commit before each student's deadline. Default: no, "
    "or what was said for DIR before.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=exercise_names,
    help="Grade this exercise, and leave the others for later; may be given several times.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="NAME",
    shell_complete=exercise_names,
    help="Leave this exercise for later, such as one that trains; may be given several times.",
)
@click.option(
    "--earlier",
    type=FOLDER,
    multiple=True,
    metavar="DIR",
    help="The results of an earlier assignment, whose free late days count against the budget of "
    "the course; may be given several times. Remembered for the folder in --out.",
)
@JOBS
@click.option("--resume", is_flag=True, help="Continue in DIR with what was handed in then.")
@CLUSTER
@click.option(
    "--log", type=FILE, metavar="FILE", help="Write what happens to FILE, a JSON object a line."
)
@click.option("--quiet", is_flag=True, help="Print no line for each student.")
@SEED
@isolation_option("confined")
@COURSE
def batch(
    submissions: Path | None,
    out: Path | None,
    dry_run: bool,
    no_roster: bool,
    replaces: bool,
    resume: bool,
    log: Path | None,
    quiet: bool,
    seed: int | None,
    isolation: Isolation,
    course: Course,
    jobs: int | None,
    cluster: str | None,
    only: tuple[str, ...],
    without: tuple[str, ...],
    earlier: tuple[Path, ...],
    **choices: Any,
) -> int:
    """Grade a class: a folder or a zip of submissions, from any platform.

    \b
    grader batch submissions/ --out results/            grade, or continue
    grader batch submissions.zip --dry-run              who handed in what
    grader batch submissions/ --out results/ --roster class.csv
    grader batch --resume --out results/                after a crash, or Ctrl-C
    grader batch submissions/ --out results/ --without tiny_gpt   later: --resume

    A plain folder or zip for each student, downloads of Canvas, Moodle and
    Gradescope, and git clones are recognised. DIR/index.html shows the class,
    DIR/reports/ holds a page for each student, DIR/grades.csv the marks. Whatever
    stops it, the same command continues where it was: nothing is graded twice.
    Other people's code runs confined or not at all.
    """
    given = {**choices, "earlier": earlier or None}
    _refuse_contradictions(submissions, given, resume=resume, no_roster=no_roster)
    course = with_list(course, None if out is None else list_in(out))
    later = _left_for_later(course, only, without)
    request = None
    if submissions is not None:
        refuse_handed_in(course, submissions)
        choices = _completed(choices, remembered(out), no_roster=no_roster)
        request = IntakeRequest(submissions, **choices)
    if dry_run:
        if request is None:
            raise RequestError("which submissions?", "grader batch SUBMISSIONS --dry-run")
        with open_intake(request, course, out) as intake:
            _echo_attempts(intake, course)
        return 0
    if out is None:
        raise RequestError("where do the results go?", "grader batch SUBMISSIONS --out DIR")
    with contextlib.ExitStack() as stack:
        if request is None:
            existing(out)
        else:
            intake = stack.enter_context(open_intake(request, course, out))
            _echo_intake(intake)
        engine = engine_for(course, isolation, jobs, cluster)
        stack.callback(engine.close)
        ledger = stack.enter_context(open_ledger(out))
        if not ledger.has_results():
            engine.start()
        ledger.put(LATER, " ".join(later))
        standings = Standings(course, ledger, class_secret(ledger, seed) or fresh_secret())
        if request is None:
            standings.refuse_changed_rules()
            why = ""
        else:
            on_taken = partial(_count_free_days, ledger, out, earlier)
            why = _take_in(intake, request, standings, replaces, on_taken)
        ledger.put(SECRET, standings.secret.hex())
        if course.chosen:
            ledger.put(LIST, course.chosen)
        publisher = Publisher(standings, out, why or "graded again")
        return _grade(publisher, engine, log, quiet, seed)


def _left_for_later(course: Course, only: Sequence[str], without: Sequence[str]) -> list[str]:
    """Return the exercises that this run leaves out, in teaching order; check all names."""
    named = {course[name].name for name in (*only, *without)}
    if only and without:
        raise RequestError("--only and --without say two things", "leave out one")
    return [name for name in course.names if (name in named) != bool(only)] if named else []


def _refuse_contradictions(
    submissions: Path | None, choices: Mapping[str, Any], *, resume: bool, no_roster: bool
) -> None:
    """Raise `RequestError` for options that contradict each other, or are missing."""
    if submissions is None and not resume:
        raise RequestError("which submissions?", "grader batch SUBMISSIONS --out DIR")
    given = submissions, *choices.values(), no_roster or None
    if resume and any(value is not None for value in given):
        raise RequestError(
            "--resume continues with what was handed in then, and takes no other submissions, "
            "roster, groups, layout, attempt or earlier results",
            "grader batch --resume --out DIR, or leave out --resume",
        )
    if no_roster and (choices["roster"] or choices["groups"]):
        raise RequestError("--no-roster and a list of students say two things", "leave out one")


def _completed(choices: Mapping[str, Any], kept: Kept, *, no_roster: bool) -> dict[str, Any]:
    """Return the choices of an intake; a choice that is not made now stays as made before."""
    before_due = choices["before_due"]
    return {
        **choices,
        "attempt": choices["attempt"] or kept.attempt,
        "before_due": kept.before_due if before_due is None else before_due,
        "kept": Kept() if no_roster else kept,
    }


def _grade(
    publisher: Publisher, engine: Engine, log: Path | None, quiet: bool, seed: int | None
) -> int:
    standings, out = publisher.standings, publisher.out
    start, worst = time.perf_counter(), 0
    students = len(standings.ledger.students())
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_open_log(log)) if log else None
        verdict, named = None if quiet else verdict_line, standings.ledger.named
        display = ProgressDisplay(students, verdict, file, named=named)
        stack.enter_context(display.shown())
        events = grade_class(standings, engine, publisher)
        stack.enter_context(contextlib.closing(events))
        try:
            for event in events:
                if event.report is not None:
                    worst = max(worst, exit_code(event.report))
                display.show(event)
        except KeyboardInterrupt:
            click.echo(f"\n  {display.done} of {students} graded, and kept", err=True)
            click.echo(f"  to go on: grader batch --resume --out {short_path(out)}", err=True)
            raise
    spent = time.perf_counter() - start
    done = f"{display.done} submissions graded in {spent:.1f} seconds"
    click.echo(f"\n  {done}, {seed_in_words(standings.seed, seed)}")
    for remark in standings.remarks:
        click.echo(f"  ! {remark}")
    if standings.later:
        names = ", ".join(name for name in standings.course.names if name in standings.later)
        how = f"grader batch --resume --out {short_path(out)}"
        click.echo(f"  left for later: {names}    {how}")
    click.echo(f"  reports: {short_path(out / REPORTS)}/    marks: {short_path(out / GRADES)}")
    click.echo(f"  the class, opens on a double click: {short_path(out / DASHBOARD)}")
    return max(worst, echo_review(standings.ledger))


def _open_log(path: Path) -> IO[str]:
    try:
        return open_private(path, "a")
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}", "--log FILE") from None


def _take_in(
    intake: Intake,
    request: IntakeRequest,
    standings: Standings,
    replaces: bool,
    on_taken: Callable[[], None],
) -> str:
    """Store what was handed in, all or nothing; return why marks of the same files may change.

    Raise `RequestError` if published marks change or go, unless the teacher `replaces` them.
    `on_taken` is called when everybody is known.
    """
    ledger = standings.ledger
    with progress_bar(len(intake.selected)) as on_student, ledger.writing():
        rules = replace(standings).rules
        before, lists = published_attempts(ledger), [ledger.get(key) for key in (ROSTER, GROUPS)]
        intake.store(ledger, standings.course, on_student)
        _admit_erased(ledger, replaces)
        on_taken()
        before_due = {"before_due": "yes"} if request.before_due else {}
        ledger.put("request", {"attempt": request.attempt, **before_due})
        why = ""
        if lists != [ledger.get(key) for key in (ROSTER, GROUPS)]:
            why = _lists_in_words(intake)
            ledger.remember(HistoryRow("roster", why))
        now = replace(standings)  # under the choices that were just made
        replaced = list(replacements(now, before, rules))
        if replaced and not replaces:
            raise RequestError(
                _replaced_in_words(replaced, ledger),
                "--replace   takes these submissions all the same; another class or homework "
                "goes into another --out DIR",
            )
        ledger.remember(*(HistoryRow("replaced", each.why, each.student) for each in replaced))
        now.refuse_changed_rules(rules)
        return why


def _count_free_days(ledger: Ledger, out: Path, earlier: Sequence[Path]) -> None:
    remember_earlier(ledger, out, earlier)
    store_used(ledger, free_days_used(ledger, out))


def _admit_erased(ledger: Ledger, replaces: bool) -> None:
    """Raise `RequestError` if an erased student is among the submissions or on the roster."""
    students = come_back(ledger)
    if students and not replaces:
        who = folded([ledger.named(student) for student in students], MAX_NAMED)
        raise RequestError(
            f"erased here before, and still in the submissions or on the roster: {who}. "
            "Nothing was taken in",
            "take them out of the submissions and the roster; --replace stores and grades them "
            "again",
        )
    take_back(ledger, students)


def _lists_in_words(intake: Intake) -> str:
    """Return a line on the roster and the groups that count from now on."""
    roster, groups = intake.roster, intake.groups
    extended = sum(row.due is not None for row in roster.rows)
    students = count_students(len(roster.rows))
    own = f"the roster {roster.file}: {students}, {extended} with a due date of their own"
    says = own if roster.rows else "without a roster from now on"
    return f"{says}; groups of {groups.file}" if groups.rows else says


def _replaced_in_words(replaced: Sequence[Replacement], ledger: Ledger) -> str:
    lines = [f"  {ledger.named(each.student)}: {each.why}" for each in replaced[:MAX_LISTED]]
    if len(replaced) > MAX_LISTED:
        lines.append(f"  and {len(replaced) - MAX_LISTED} more")
    what = "published mark" if len(replaced) == 1 else "published marks"
    head = f"{len(replaced)} {what} would change or go, so nothing was taken in:"
    return "\n".join([head, *lines])


# --- the submissions ------------------------------------------------------------------------------


def _echo_intake(intake: Intake) -> None:
    attempts = len(intake.selected)
    more = f", {attempts} attempts" if attempts > intake.students else ""
    click.echo(f"  {intake.layout} layout: {count_students(intake.students)}{more}", err=True)
    for left in intake.left_out[:MAX_LISTED]:
        click.echo(f"  {left.what} {left.why} and was left out", err=True)
    if len(intake.left_out) > MAX_LISTED:
        click.echo(f"  and {len(intake.left_out) - MAX_LISTED} more", err=True)
    for text in shortened(intake.said, MAX_LISTED):
        click.echo(f"  {text}", err=True)
    if intake.missing:
        names = folded([member.who for member in intake.missing])
        click.echo(f"  of the roster, {len(intake.missing)} handed in nothing: {names}", err=True)


def _echo_attempts(intake: Intake, course: Course) -> None:
    _echo_intake(intake)
    for selected, submission in intake.read(course):
        row = selected.row(submission)
        days = course.policy.days_late(row.submitted, row.due)
        words = [f"{len(submission.files)} of {len(course.names)} exercises"]
        if row.submitted:
            zone = course.policy.zone or row.submitted.tzinfo
            words.append(f"handed in {row.submitted.astimezone(zone):%Y-%m-%d %H:%M %Z}".rstrip())
        if days or row.late:
            words.append(delay_in_words(days) if days else "late")
        if not selected.graded:
            words.append("an attempt that does not count")
        number = f" attempt {row.number}" if row.number > 1 or not selected.graded else ""
        click.echo(f"  {row.person.beside(row.student)}{number}: {', '.join(words)}")
        flags = intake.flags.get(row.student, ())
        for text in sorted({*submission.problems.values(), *submission.notes, *flags}):
            click.echo(click.wrap_text(text, 79, "      ", "      "))
    click.echo("\n  nothing was graded: this was a dry run")
