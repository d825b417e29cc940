"""Grading a class: `grader batch`."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from grader.cli.options import COURSE, SEED, counted, isolation_from, short

if TYPE_CHECKING:
    from grader.classroom.run import Engine
    from grader.course.course import Course
    from grader.classroom.standings import Classbook
    from grader.classroom.intake import Intake
    from grader.classroom.ledger import Ledger
    from grader.report import Report

LAYOUTS = ("plain", "canvas", "moodle", "gradescope", "clones")
WIDTH = 79
MAX_TOLD = 30  # of what was left out
JOBS = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Grade N submissions at a time. Default: one for each core.",
)
CLUSTER = click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Grade on the workers of the Dask scheduler at ADDRESS, such as tcp://host:8786.",
)


class _Shard(click.ParamType[tuple[int, int]]):
    name = "i/n"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        number, _, parts = str(value).partition("/")
        if number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts):
            return int(number), int(parts)
        self.fail(f"{value} is not a part such as 3/10, the third of ten", param, ctx)


@click.command()
@click.argument("submissions", type=click.Path(path_type=Path), required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the reports, the marks, the dashboard and the ledger go.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be graded for whom, and stop.")
@click.option(
    "--layout", type=click.Choice(LAYOUTS), help="Where it was downloaded. Default: recognised."
)
@click.option(
    "--roster",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="CSV",
    help="The class: a line for each student (id, name, email, section, due, …).",
)
@click.option(
    "--attempt",
    type=click.Choice(["latest", "best", "first", "all"]),
    help="Which of several attempts counts; `all` grades each, and the latest counts. "
    "Default: latest, or what was said for DIR before.",
)
@JOBS
@click.option("--resume", is_flag=True, help="Go on where DIR stands, as it was handed in then.")
@CLUSTER
@click.option(
    "--shard", type=_Shard(), metavar="i/n", help="Grade the i-th of n parts; then `grader merge`."
)
@click.option(
    "--log",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write what happens to FILE, a JSON object a line.",
)
@click.option("--quiet", is_flag=True, help="No line for each student.")
@SEED
@isolation_from("confined")
@COURSE
def batch(
    submissions: Path | None,
    out: Path | None,
    dry_run: bool,
    resume: bool,
    shard: tuple[int, int] | None,
    log: Path | None,
    quiet: bool,
    seed: int | None,
    isolation: Any,
    course: Path | None,
    jobs: int | None,
    cluster: str | None,
    **asked: Any,
) -> int:
    """Grade a class: a folder or a zip of submissions, from any platform.

    \b
    grader batch submissions/ --out results/            grade, or go on
    grader batch submissions.zip --dry-run              who handed in what
    grader batch submissions/ --out results/ --roster class.csv
    grader batch --resume --out results/                after a crash, or Ctrl-C

    A plain folder or zip for each student, downloads of Canvas, Moodle and
    Gradescope, and clones are recognised. DIR/index.html shows the class, DIR/reports/
    holds a page for each student, DIR/grades.csv the marks. Whatever stops it, the
    same command goes on where it was: nothing is graded twice. Other people's code is
    run confined, or not at all.
    """
    from grader.course.course import find_course
    from grader.errors import RequestError
    from grader.classroom.intake import Request, kept_attempt, looked_at
    from grader.classroom.ledger import existing, opened
    from grader.commands.merge import name_of

    found = find_course(course or Path.cwd())
    if submissions is None and not resume:
        raise RequestError("which submissions?", "grader batch SUBMISSIONS --out DIR")
    given = [name for name, value in asked.items() if value is not None]
    if resume and (given or submissions is not None):
        raise RequestError(
            "--resume goes on with what was handed in then, and takes no other submissions, "
            "roster, layout or attempt",
            "grader batch --resume --out DIR, or leave out --resume",
        )
    place = out if out is None or shard is None else out / name_of(*shard)
    asked["attempt"] = asked["attempt"] or kept_attempt(place)
    request = None if submissions is None else Request(submissions, shard=shard, **asked)
    if dry_run:
        if request is None:
            raise RequestError("which submissions?", "grader batch SUBMISSIONS --dry-run")
        with looked_at(request, found, out) as handed_in:
            _tell_all(handed_in, found)
        return 0
    if out is None or place is None:
        raise RequestError("where do the results go?", "grader batch SUBMISSIONS --out DIR")
    if shard is not None and seed is None:
        raise RequestError(
            "every part of a class needs the same seed", "--shard i/n --seed 7, for each part"
        )
    if resume:
        existing(place)
    with contextlib.ExitStack() as stack:
        intake: Intake | None = None
        if not resume and request is not None:
            intake = stack.enter_context(looked_at(request, found, out))
            _tell_of(intake)
        engine = engine_for(found, isolation, jobs, cluster)
        stack.callback(engine.close)
        ledger = stack.enter_context(opened(place))
        if not ledger.has_results():
            engine.start()
        if intake is not None:
            _take_in(intake, request, ledger, found)
        book = _book(found, ledger, seed)
        return _grade(book, engine, place, log, quiet)


def _grade(book: Classbook, engine: Engine, out: Path, log: Path | None, quiet: bool) -> int:
    from grader.classroom.run import grade_class
    from grader.commands.progress import Meter
    from grader.classroom.publishing import DASHBOARD, GRADES, REPORTS, Publisher

    start = time.perf_counter()
    worst = 0
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_log(log)) if log else None
        students = len(book.ledger.students())
        meter = Meter(students, None if quiet else verdict, file)

        def told(event: Any) -> None:
            nonlocal worst
            if event.report is not None:
                worst = max(worst, code_of(event.report))
            meter.told(event)

        stack.enter_context(meter.shown())
        grade_class(book, engine, Publisher(book, out), told)
    spent = time.perf_counter() - start
    click.echo(f"\n  {meter.done} submissions graded in {spent:.1f} seconds, seed {book.seed}")
    click.echo(f"  reports: {short(out / REPORTS)}/    marks: {short(out / GRADES)}")
    click.echo(f"  the class, opens on a double click: {short(out / DASHBOARD)}")
    return worst


def _log(path: Path) -> IO[str]:
    from grader.errors import RequestError

    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}", "--log FILE") from None


def code_of(report: Report) -> int:
    """What a command ends with that has graded this."""
    if report.has_errors:
        return 3
    return 0 if report.passed else 1


def engine_for(course: Course, isolation: Any, jobs: int | None, cluster: str | None) -> Engine:
    """Whoever is to grade: slots here, or on a cluster. Raises where code is not kept in."""
    from grader.errors import RequestError

    if cluster is not None:
        try:
            from grader.classroom.workers.cluster import Cluster
        except ImportError as error:
            raise RequestError(
                f"--cluster needs Dask: {error}", "pip install 'attention-grader[cluster]'"
            ) from None
        return Cluster(course, isolation, cluster)
    from grader.classroom.workers.pool import Pool, cores, refuse_unconfined

    if isolation == "confined":
        refuse_unconfined(course)
    return Pool(course, isolation, jobs or len(cores()))


def _book(course: Course, ledger: Ledger, seed: int | None) -> Classbook:
    """The class under the seed that was asked for, or under that of its first run."""
    from grader.classroom.standings import Classbook
    from grader.grading.reporter import fresh_seed

    kept = ledger.get("seed")
    chosen = seed if seed is not None else kept if kept is not None else fresh_seed()
    book = Classbook(course, ledger, chosen)
    book.refuse_changed()
    ledger.put("seed", chosen)
    return book


def _take_in(intake: Intake, request: Any, ledger: Ledger, course: Course) -> None:
    """Read what was handed in, with a bar where there is a terminal."""
    with counted(len(intake.taken)) as told:
        intake.keep(ledger, course, told)
    ledger.put("request", {"attempt": request.attempt})


def verdict(report: Any) -> str:
    """A submission in one line."""
    from grader.reports.checks import amount, counted

    points, most = counted(report.to_json())
    wrong = next((exercise for exercise in report.exercises if not exercise.passed), None)
    says = f"first to mend: {wrong.name}" if wrong else "nothing to mend"
    if report.flags:
        says = f"! {report.flags[0]}"
    line = f"  {report.submission}  {amount(points):>3} / {amount(most)}  {says}"
    return line if len(line) < WIDTH else f"{line[: WIDTH - 1]}…"


# --- what was handed in ---------------------------------------------------------------------------


def _tell_of(intake: Intake) -> None:
    """What was taken for what, in a few lines."""
    attempts = len(intake.taken)
    more = f", {attempts} attempts" if attempts > intake.students else ""
    click.echo(f"  {intake.layout} layout: {students(intake.students)}{more}", err=True)
    for left in intake.left_out[:MAX_TOLD]:
        click.echo(f"  {left.what} {left.why} and was left out", err=True)
    if len(intake.left_out) > MAX_TOLD:
        click.echo(f"  and {len(intake.left_out) - MAX_TOLD} more", err=True)
    for student in intake.unsure:
        click.echo(f"  {student} fits several lines of the roster, and none was taken", err=True)
    if intake.missing:
        names = ", ".join(listed.student for listed in intake.missing)
        click.echo(f"  of the roster, {len(intake.missing)} handed in nothing: {names}", err=True)


def students(count: int) -> str:
    """So many students."""
    return f"{count} student{'s' if count != 1 else ''}"


def _tell_all(intake: Intake, course: Course) -> None:
    """What would be graded for whom."""
    _tell_of(intake)
    for taken, submission in intake.read(course):
        entry = taken.entry(submission)
        days = course.policy.days_late(entry.submitted, entry.due)
        words = [f"{len(submission.files)} of {len(course.names)} exercises"]
        if entry.submitted:
            words.append(f"handed in {entry.submitted:%Y-%m-%d %H:%M %Z}".rstrip())
        if days or entry.late:
            words.append(f"{days:.1f} days late" if days else "late")
        if not taken.graded:
            words.append("an attempt that does not count")
        number = f" attempt {entry.number}" if entry.number > 1 or not taken.graded else ""
        name = f" ({entry.person.name})" if entry.person.name else ""
        click.echo(f"  {entry.student}{name}{number}: {', '.join(words)}")
        for text in sorted({*submission.problems.values(), *submission.notes}):
            click.echo(click.wrap_text(text, 79, "      ", "      "))
    click.echo("\n  nothing was graded: this was a dry run")


COMMANDS = (batch,)
