"""Grades one submission on a platform's machine, from the files that `grader autograder` wrote.

If the grader itself fails, no result is written. The platform then reports the missing result, or
shows a prepared one that says so, and no student loses points.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from grader.classroom.workers.pool import refuse_unconfined
from grader.commands import work
from grader.course.course import Course, load_course
from grader.course.visibility import after_due, for_student
from grader.errors import InternalError, RequestError
from grader.files import make_way, put_file, read_bounded
from grader.grading.seeds import fresh_secret, seed_of_submission
from grader.grading.session import with_grader
from grader.report import Report
from grader.reports import to_text
from grader.reports.platforms import classroom50, gradescope, prairielearn
from grader.sandbox.confinement.limits import Isolation
from grader.submissions.layouts import Attempt, AttemptPart, collect
from grader.submissions.submission import Submission
from grader.trees import NotOpened, read_file

COURSE, SETTINGS = "course", "settings.json"  # in the folder that was brought to the platform
SHARED = "serverFilesCourse/attention_grader"  # that folder in PrairieLearn's course and jobs
EXERCISES = "exercises.txt"  # in the tests of a question there: the exercises that it asks for
NAME = "submission"  # the student's id in the report; the platform knows the student itself
MAX_SETTINGS_BYTES = 1 << 20
MAX_METADATA_BYTES = 64 << 20  # bytes: the file holds the results of all earlier submissions


class PlatformSettings(msgspec.Struct, frozen=True):
    """How to grade: `secret` decides the inputs of each submission; without it, they are random."""

    isolation: Isolation
    secret: str = ""
    chosen: str = ""  # the list of exercises; empty for all

    @property
    def key(self) -> bytes:
        """The secret as bytes."""
        return bytes.fromhex(self.secret) or fresh_secret()


def read_platform_settings(path: Path, within: Path | None = None) -> PlatformSettings:
    """Return the settings in a file, of the folder `within` if that is given.

    Raises `RequestError`.
    """
    try:
        data = read_file(path, within or path, MAX_SETTINGS_BYTES)
        return msgspec.json.decode(data, type=PlatformSettings)
    except (OSError, NotOpened, msgspec.MsgspecError) as error:
        raise RequestError(f"{path}: {error}", "grader autograder   writes it again") from None


class GradescopeAssignment(msgspec.Struct, frozen=True):
    """The part of Gradescope's metadata on the assignment that decides a mark."""

    due_date: datetime | None = None


class GradescopeMetadata(msgspec.Struct, frozen=True):
    """The part of `submission_metadata.json` that decides a mark; a missing value is unknown."""

    created_at: datetime | None = None
    assignment: GradescopeAssignment = GradescopeAssignment()


@dataclass(frozen=True)
class PlatformGrader:
    """Grades submissions with the course and the settings in a folder."""

    course: Course
    settings: PlatformSettings

    @classmethod
    def of(cls, folder: Path) -> PlatformGrader:
        """Return the grader for the folder that was brought to the platform."""
        settings = read_platform_settings(folder / SETTINGS)
        return cls(load_course(folder / COURSE, settings.chosen), settings)

    def grade(
        self,
        folder: Path,
        names: Sequence[str] = (),
        submitted: datetime | None = None,
        due: datetime | None = None,
    ) -> Report:
        """Return the report on the submission in a folder; `names` are all exercises by default.

        Raises `InternalError` if points are missing for which the student's code may not be to
        blame.
        """
        course, policy = self.course, self.course.policy
        names = names or course.names
        if self.settings.isolation == "confined":
            refuse_unconfined(course)
        with work.starting(self.settings.isolation) as source:
            handed_in = Attempt(NAME, (AttemptPart(folder, folder.name),))
            submission = collect(handed_in, course)
            seed = seed_of_submission(self.settings.key, submission.hash)
            report = with_grader(
                course,
                names,
                source,
                lambda grader: grader.grade(submission, names, seed).report,
            )
        _refuse_failures(report, submission)
        return replace(
            report,
            submitted=submitted.isoformat() if submitted else "",
            due=due.isoformat() if due else "",
            mark=policy.mark(report.exercises, policy.days_late(submitted, due)),
        )


def _refuse_failures(report: Report, submission: Submission) -> None:
    for result in report.exercises:
        if result.state == "error":
            says = "a check failed because of an error in the course"
            raise InternalError(f"{result.name}: {says}", "grader validate")
        if result.name in submission.files and not result.tests:
            raise InternalError(f"{result.name} could not be graded: {result.advice}")


# --- the platforms --------------------------------------------------------------------------------


def _gradescope(root: Path) -> None:
    grader, about = PlatformGrader.of(root / "source"), _metadata(root)
    policy, due = grader.course.policy, about.assignment.due_date
    report = grader.grade(root / "submission", submitted=about.created_at, due=due)
    if about.created_at is None and policy.costs_lateness:
        click.echo("no time of submission is known, so lateness was not counted", err=True)
    results = gradescope.to_results(for_student(report, policy), after_due(report, policy))
    _write(root / "results" / "results.json", results)


def _metadata(root: Path) -> GradescopeMetadata:
    path = root / "submission_metadata.json"
    try:
        data = read_bounded(path, MAX_METADATA_BYTES)
        return msgspec.json.decode(data, type=GradescopeMetadata)
    except FileNotFoundError:
        return GradescopeMetadata()
    except (OSError, msgspec.MsgspecError) as error:
        raise InternalError(f"{path}: {error}") from None


def _prairielearn(root: Path) -> None:
    grader = PlatformGrader.of(root / SHARED)
    try:
        names = (root / "tests" / EXERCISES).read_text("utf-8").split()
    except OSError as error:
        raise RequestError(f"{error.filename}: {error.strerror}", "grader autograder") from None
    names = [grader.course[name].name for name in names]
    report = grader.grade(root / "student", names)
    results = prairielearn.to_results(for_student(report, grader.course.policy))
    _write(root / "results" / "results.json", results)


def _classroom50(root: Path) -> None:
    grader, checkout = PlatformGrader.of(root), Path.cwd()
    report = grader.grade(checkout)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    visible = for_student(report, grader.course.policy)
    _write(checkout / "result.json", classroom50.to_result(visible, os.environ, now))


PLATFORMS: Mapping[str, Callable[[Path], None]] = {
    "gradescope": _gradescope,
    "prairielearn": _prairielearn,
    "classroom50": _classroom50,
}


def _write(path: Path, data: object) -> None:
    """Replace a file in one step, whatever a student has put in its place or done to its folder."""
    with contextlib.suppress(OSError):
        path.parent.chmod(path.parent.stat().st_mode | stat.S_IRWXU)
    if path.is_dir() and not path.is_symlink():
        make_way(path)
    put_file(path, to_text(data))
