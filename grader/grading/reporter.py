"""From results to a report: what the course itself has to say beside the verdicts.

Knows neither torch nor pytest, so that whoever only reports starts at once.
"""

from __future__ import annotations

import functools
import platform
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from grader import __version__
from grader.course.course import Course, Exercise
from grader.report import ExerciseResult, Report
from grader.course.stubs import make_stub, statement_of
from grader.submissions.submission import Submission

SEED_BITS = 48


def fresh_seed() -> int:
    """A seed nobody can guess."""
    return secrets.randbits(SEED_BITS)


@dataclass(frozen=True)
class Task:
    """An exercise as students get it: its stub, and the statement in it."""

    stub: str
    statement: str


@dataclass(frozen=True)
class Reporter:
    """Makes the reports of one course's submissions."""

    course: Course
    _tasks: dict[str, Task] = field(default_factory=dict, compare=False)

    def report(
        self,
        submission: Submission,
        results: Sequence[ExerciseResult],
        seed: int,
        confinement: Sequence[str],
    ) -> Report:
        """The report on one submission, of which `results` was found."""
        passed = {result.name: result.passed for result in results}
        return Report(
            submission=submission.name,
            seed=seed,
            suites=self.course.suites,
            confinement=tuple(confinement),
            exercises=tuple(self._helped(result, submission, passed) for result in results),
            notes=submission.notes,
            versions=versions(),
            hashes={"course": self.course.hash, "submission": submission.hash},
        )

    def _helped(
        self, result: ExerciseResult, submission: Submission, passed: dict[str, bool]
    ) -> ExerciseResult:
        """The result with what helps to mend it, or with the idea behind what was mended."""
        exercise = self.course[result.name]
        if result.passed:
            return replace(result, idea=exercise.idea)
        return replace(
            result,
            advice=result.advice or self._order(exercise, submission, passed),
            statement=self._task(exercise.name).statement,
            hints=exercise.hints,
        )

    def _order(self, exercise: Exercise, submission: Submission, passed: dict[str, bool]) -> str:
        """What to solve before an exercise that builds on it, if that is not solved yet."""
        for name in exercise.requires:
            begun = submission.files.get(name, "") not in ("", self._task(name).stub)
            if not passed.get(name, begun):
                return f"{name} comes first: this exercise builds on it"
        return ""

    def _task(self, name: str) -> Task:
        """Read once, not once a submission."""
        if name not in self._tasks:
            stub = make_stub(self.course[name])
            self._tasks[name] = Task(stub, statement_of(stub))
        return self._tasks[name]


def problem_of(submission: Submission, name: str) -> str:
    """Why an exercise of a submission cannot be run at all, or nothing."""
    if name in submission.problems:
        return submission.problems[name]
    return "" if name in submission.files else f"there is no {name}.py in this submission"


def not_run(exercise: Exercise, why: str) -> ExerciseResult:
    """The result of an exercise that was not run."""
    return ExerciseResult(exercise.name, exercise.title, 0, exercise.points, why, ())


@functools.cache
def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {
        "attention-grader": __version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "pytest": version("pytest"),
    }
