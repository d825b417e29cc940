"""Shared parts of the commands on a class: options, the engine, the class in a folder."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import click

from grader.classroom.ledger import Ledger, open_ledger
from grader.classroom.pseudonyms import KEY as PSEUDONYMS
from grader.classroom.pseudonyms import PREFIX, Pseudonyms
from grader.classroom.publishing import Publisher
from grader.classroom.run import Engine
from grader.classroom.standings import Standings
from grader.classroom.storage import FILE, existing, settings_of
from grader.classroom.workers import pool
from grader.commands.options import CHOSEN
from grader.course.course import Course, load_course
from grader.errors import GraderError, RequestError, did_you_mean
from grader.grading.seeds import public_seed, secret_from
from grader.installing import install_extra
from grader.printing import filtered
from grader.report import Report
from grader.reports.figures import amount
from grader.sandbox.confinement.limits import Isolation

WIDTH = 79
SECRET = "secret"  # the setting that holds the secret of the class's inputs
LIST = "course_list"  # the setting that holds the list of exercises
SEED_BEFORE = "seed"  # which an older ledger has instead of a secret
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
GRADED = click.option(
    "--in",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    metavar="DIR",
    help="The folder that `grader batch` wrote. Default: this one.",
)
REASON = click.option(
    "--why", "--reason", "why", metavar="TEXT", help="The reason, which the student reads."
)


def engine_for(
    course: Course,
    isolation: Isolation,
    jobs: int | None,
    cluster: str | None,
) -> Engine:
    """Return the engine that grades: processes here, or on a cluster.

    Raise `RequestError` if it cannot confine other people's code as `isolation` asks.
    """
    if course.sealed and (isolation != "confined" or cluster is not None):
        raise RequestError(
            "a bundle is opened only on this machine, where student code is confined",
            "leave out --isolation and --cluster",
        )
    if cluster is not None:
        try:
            from grader.classroom.workers.cluster import Cluster  # noqa: PLC0415, Dask is an extra
        except ImportError as error:
            raise RequestError(f"--cluster needs Dask: {error}", install_extra("cluster")) from None
        return Cluster(course, isolation, cluster)
    if isolation == "confined":
        pool.refuse_unconfined(course)
    return pool.WorkerPool(course, isolation, jobs or len(pool.available_cores()))


@contextlib.contextmanager
def graded_class(course: Course, folder: Path, seed: int | None = None) -> Iterator[Standings]:
    """Open the class that was graded into a folder, with its own seed or another one."""
    with open_ledger(existing(folder)) as ledger:
        course = with_list(course, ledger.get(LIST))
        secret = class_secret(ledger, seed)
        if secret is None:
            raise RequestError(
                f"in {folder}, no run over the class has graded anything",
                f"grader batch SUBMISSIONS --out {folder}",
            )
        yield Standings(course, ledger, secret)


def list_in(folder: Path) -> str | None:
    """Return the list of exercises with which the class in a folder was graded, or None."""
    return settings_of(folder / FILE).get(LIST) if (folder / FILE).is_file() else None


def with_list(course: Course, kept: str | None) -> Course:
    """Return the course with the list of exercises that the class was graded with before.

    Raises `RequestError` if the command was given another.
    """
    if kept is None or kept == course.chosen:
        return course
    if click.get_current_context().meta.get(CHOSEN):
        raise RequestError(
            f"these results are for the list `{kept}`",
            f"--course-list {kept}; another list goes into another --out DIR",
        )
    chosen = load_course(course.root, kept)
    return replace(chosen, sealed=course.sealed, trusted=course.trusted)


def class_secret(ledger: Ledger, seed: int | None = None) -> bytes | None:
    """Return the secret that decides the inputs of a class; None if it has none yet.

    A `seed` chooses another secret. The seed in the reports of this class stands for the class's
    own secret, which only the ledger holds. An older ledger has a seed instead of a secret.
    """
    kept, older = ledger.get(SECRET), ledger.get(SEED_BEFORE)
    secret = None if kept is None else bytes.fromhex(kept)
    if secret is None and older is not None:
        secret = secret_from(older)
    if seed is None or (secret is not None and seed == public_seed(secret)):
        return secret
    return secret_from(seed)


def seed_in_words(printed: int, asked: int | None) -> str:
    """Return the seed that reports print, with the one that was asked for if it is another."""
    return f"seed {printed}" + (f" (of --seed {asked})" if asked not in (None, printed) else "")


def known_student(standings: Standings, student: str) -> str:
    """Return the id of a student, given it or the name; raise `RequestError` if nobody has it.

    A command that is given a pseudonym prints nobody's id or name from then on.
    """
    ledger = standings.ledger
    if student.startswith(PREFIX) and ledger.get(PSEUDONYMS):
        pseudonyms = Pseudonyms(ledger)
        if student in pseudonyms.students:
            click.get_current_context().with_resource(names_hidden(pseudonyms))
            student = pseudonyms.students[student]
    known = ledger.students()
    if student in dict(ledger.missing()):
        raise RequestError(
            f"{ledger.named(student)} has handed in nothing",
            "`missing` in course.toml says what that counts",
        )
    if student not in known and len(own := students_called(ledger, known, student)) == 1:
        return own[0]
    if student not in known:
        raise RequestError(
            f"nobody called `{student}` has handed in{did_you_mean(student, known)}",
            "grades.csv lists everybody",
        )
    return student


@contextlib.contextmanager
def names_hidden(pseudonyms: Pseudonyms) -> Iterator[None]:
    """Print pseudonyms in the place of ids and names, also in what an error says."""
    with filtered(pseudonyms.text):
        try:
            yield
        except GraderError as error:
            error.message = pseudonyms.text(error.message)
            error.remedy = pseudonyms.text(error.remedy)
            raise


def students_called(ledger: Ledger, students: Iterable[str], name: str) -> list[str]:
    """Return those of the students who have a name, login or e-mail address."""
    found = []
    for student in students:
        person = ledger.person(student)
        known = {person.name.casefold(), person.login.casefold(), person.email.casefold()}
        if name.casefold() in known - {""}:
            found.append(student)
    return found


def echo_review(ledger: Ledger) -> int:
    """Name the students who need review; return the exit code: 1, or 0 if there are none."""
    for line in ledger.review.lines(ledger.named):
        click.echo(f"  ! {line}", err=True)
    return 1 if ledger.review.reasons else 0


def republished(
    standings: Standings, folder: Path, students: Collection[str], why: str
) -> list[Report]:
    """Publish students' reports again, unless all marks wait for a regrade; return the reports."""
    publisher = Publisher(standings, folder, why)
    reports = map(publisher.publish, students if standings.is_as_published else ())
    published = [report for report in reports if report is not None]
    if len(published) < len(students):
        click.echo("  kept, but not published: grader regrade shows what else has changed")
    if published:
        publisher.finish()
    return published


def verdict_line(report: Report) -> str:
    """Return a submission's result in one line."""
    wrong = next((exercise for exercise in report.exercises if not exercise.passed), None)
    says = f"first to fix: {wrong.name}" if wrong else "nothing to fix"
    if report.flags:
        says = f"! {report.flags[0]}"
    points, most = amount(report.counted), amount(report.max_counted)
    line = f"  {report.who}  {points:>3} / {most}  {says}"
    return line if len(line) < WIDTH else f"{line[: WIDTH - 1]}…"


def confirmed(question: str, *, otherwise: bool) -> bool:
    """Return the user's answer to a question; `otherwise` if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return otherwise
    return click.confirm(f"\n  {question}")


def count_students(count: int) -> str:
    """Return `1 student`, `2 students` and so on."""
    return f"{count} student{'s' if count != 1 else ''}"
