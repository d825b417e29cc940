"""The reporter: makes reports from results. Imports neither torch nor pytest, so it starts fast."""

from __future__ import annotations

import functools
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from grader import __version__
from grader.course.course import Course, Exercise
from grader.course.named import Named, load_named
from grader.course.stubs import is_untouched, make_stub, statement_of, untouched_text
from grader.grading.naming import with_name
from grader.report import ExerciseResult, Report
from grader.submissions.submission import Submission

PUBLIC = (
    "These are points of the public checks that came with this copy. "
    "In the end the course's hidden checks decide, with inputs of their own."
)
MAX_TRIES = 3  # of an exercise whose process is lost, before it is given up for review


@dataclass(frozen=True)
class Reporter:
    """Makes the reports of one course's submissions."""

    course: Course
    _stubs: dict[str, tuple[str, str]] = field(default_factory=dict, compare=False)
    _named: dict[str, tuple[Named, ...]] = field(default_factory=dict, compare=False)

    def report(
        self,
        submission: Submission,
        results: Sequence[ExerciseResult],
        seed: int,
        confinement: Sequence[str],
    ) -> Report:
        """Return the report on one submission with these results."""
        results = [self.named(result) for result in results]
        passed = {result.name: result.passed for result in results}
        return Report(
            submission=submission.name,
            seed=seed,
            suites=self.course.suites,
            confinement=tuple(confinement),
            exercises=tuple(self._with_help(result, submission, passed) for result in results),
            notes=(*submission.notes, *([PUBLIC] if self.course.suites == "public" else [])),
            versions=versions(),
            hashes={"course": self.course.hash, "submission": submission.hash},
        )

    def named(self, result: ExerciseResult) -> ExerciseResult:
        """Return a result with the name that a teacher gave its mistake, if it has one."""
        name = result.name
        if name not in self._named:
            self._named[name] = load_named(self.course[name])
        once = self.course.policy.carry_forward
        return with_name(result, self._named[name], charge_once=once)

    def _with_help(
        self, result: ExerciseResult, submission: Submission, passed: dict[str, bool]
    ) -> ExerciseResult:
        """Return a failed result with advice, statement and hints, a passed one with its idea."""
        exercise = self.course[result.name]
        result = replace(result, builds_on=(*exercise.requires, *exercise.builds_on))
        if result.passed:
            return replace(result, idea=exercise.idea)
        return replace(
            result,
            advice=result.advice or self._what_comes_first(exercise, submission, passed),
            statement=self._stub_and_statement(exercise.name)[1],
            hints=exercise.hints,
        )

    def _what_comes_first(
        self, exercise: Exercise, submission: Submission, passed: dict[str, bool]
    ) -> str:
        """Return a sentence on the required exercise to solve before this one, or nothing."""
        for name in exercise.requires:
            stub = self._stub_and_statement(name)[0]
            if not passed.get(name, not is_untouched(submission.files.get(name, ""), stub)):
                return f"{name} comes first: this exercise builds on it"
        return ""

    def _stub_and_statement(self, name: str) -> tuple[str, str]:
        if name not in self._stubs:
            stub = make_stub(self.course[name])
            self._stubs[name] = stub, statement_of(stub)
        return self._stubs[name]


def problem_of(submission: Submission, name: str) -> str:
    """Return why exercise `name` of a submission cannot run, or nothing if it can."""
    if name in submission.problems:
        return submission.problems[name]
    return "" if name in submission.files else f"there is no {name}.py in this submission"


def not_run(exercise: Exercise, why: str) -> ExerciseResult:
    """Return the result of an exercise that was not run, with the reason."""
    return ExerciseResult(exercise.name, exercise.title, 0, exercise.points, why, ())


def unbegun(course: Course, submission: Submission, name: str) -> ExerciseResult | None:
    """Return the result of an exercise for which no code has to run; None if there is some.

    Its file is untouched, or missing, or cannot be read.
    """
    exercise, problem = course[name], problem_of(submission, name)
    if problem:
        return not_run(exercise, problem)
    if is_untouched(submission.files[name], untouched_text(exercise)):
        return replace(not_run(exercise, ""), unfinished=True)
    return None


def given_up(exercise: Exercise, why: str) -> ExerciseResult:
    """Return the result of an exercise that was lost in every try, with the reason."""
    return not_run(exercise, f"given up after {MAX_TRIES} tries: {why}; needs review")


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of the software that results depend on, by name."""
    return {
        "attention-grader": __version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "pytest": version("pytest"),
    }
