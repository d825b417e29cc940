"""From a submission to a report: the named steps in between."""

from __future__ import annotations

import functools
import platform
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TypeVar

from grader import __version__
from grader.catalog import Course, Exercise
from grader.diagnosis import Diagnostician
from grader.errors import GraderError
from grader.examiner import Records, SandboxExaminer
from grader.outcomes import points_of
from grader.picture import head_view
from grader.records import Diagnosis, ExerciseResult, HeadView, Outcome, Report, clean
from grader.sandbox.desk import Desk
from grader.sandbox.host import Worker
from grader.sandbox.zygote import Zygote
from grader.stubs import make_stub, statement_of
from grader.submissions import Submission
from grader.suite import Suite, with_suite

T = TypeVar("T")
Progress = Callable[[str], None]
SEED_BITS = 48


def fresh_seed() -> int:
    """A seed nobody can guess."""
    return secrets.randbits(SEED_BITS)


def silent(name: str) -> None:
    """The progress of whoever does not watch."""


@dataclass(frozen=True)
class Task:
    """An exercise as students get it: its stub, and the statement in it."""

    stub: str
    statement: str


@dataclass(frozen=True)
class Slot:
    """A warm suite and the zygote of its workers: grades one submission after another."""

    suite: Suite
    zygote: Zygote
    _diagnosticians: dict[str, Diagnostician] = field(default_factory=dict, compare=False)
    _tasks: dict[str, Task] = field(default_factory=dict, compare=False)

    def try_confinement(self) -> None:
        """Have a worker confined, and ended: raises if it cannot be, before anything is graded."""
        worker = Worker(self.zygote)
        try:
            assert worker.layers
        finally:
            worker.close()

    def grade(
        self, submission: Submission, names: Sequence[str], seed: int, progress: Progress = silent
    ) -> Report:
        """Grade the exercises `names` of one submission."""
        return self.examine(submission, names, seed, progress)[0]

    def examine(
        self, submission: Submission, names: Sequence[str], seed: int, progress: Progress = silent
    ) -> tuple[Report, Records]:
        """As `grade`, with the record of the last exercise's calls across the boundary."""
        desk = Desk(lambda: Worker(self.zygote))
        examiner = SandboxExaminer(self.suite.references, submission, desk, seed)
        results: list[ExerciseResult] = []
        try:
            for name in names:
                progress(name)
                result = self._exercise(self.suite.course[name], examiner)
                results.append(self._helped(result, examiner, results))
        finally:
            desk.close()
        report = Report(
            submission=submission.name,
            seed=seed,
            suites=self.suite.course.suites,
            confinement=desk.layers,
            exercises=tuple(results),
            notes=submission.notes,
            versions=versions(),
            hashes={"course": self.suite.course.hash, "submission": submission.hash},
        )
        return report, examiner.records

    def _exercise(self, exercise: Exercise, examiner: SandboxExaminer) -> ExerciseResult:
        submission = examiner.submission
        problem = submission.problems.get(exercise.name, "")
        if not problem and exercise.name not in submission.files:
            problem = f"there is no {exercise.name}.py in this submission"
        outcomes: tuple[Outcome, ...] = ()
        if not problem:
            outcomes = self.suite.run(examiner, exercise.name)
            problem = _common_problem(outcomes)
        return ExerciseResult(
            name=exercise.name,
            title=exercise.title,
            points=sum(outcome.points for outcome in outcomes),
            max_points=sum(points_of(item) for item in self.suite.items.get(exercise.name, [])),
            advice=problem,
            tests=outcomes,
            unfinished=_is_unfinished(outcomes),
        )

    def _helped(
        self, result: ExerciseResult, examiner: SandboxExaminer, earlier: Sequence[ExerciseResult]
    ) -> ExerciseResult:
        """The result with what helps to mend it, or with the idea behind what was mended."""
        exercise = self.suite.course[result.name]
        if result.passed:
            return replace(result, idea=exercise.idea)
        helped = replace(
            result,
            advice=result.advice or self._order(exercise, examiner.submission, earlier),
            statement=self._task(exercise.name).statement,
            hints=exercise.hints,
        )
        try:
            return replace(
                helped,
                diagnosis=self.diagnosis(exercise, result.tests, examiner.records),
                head_view=self._head_view(result, examiner),
            )
        except GraderError:
            raise
        except Exception as error:  # a mark without its explanation is better than no mark
            told = f"the grader could not say which mistake it is ({type(error).__name__}: {error})"
            return replace(helped, advice=clean(told))

    def _task(self, name: str) -> Task:
        """Read once a slot, not once a submission."""
        if name not in self._tasks:
            stub = make_stub(self.suite.course[name])
            self._tasks[name] = Task(stub, statement_of(stub))
        return self._tasks[name]

    def _order(
        self, exercise: Exercise, submission: Submission, earlier: Sequence[ExerciseResult]
    ) -> str:
        """What to solve before an exercise that builds on it, if that is not solved yet."""
        graded = {result.name: result.passed for result in earlier}
        for name in exercise.requires:
            if name in graded:
                solved = graded[name]
            else:
                solved = submission.files.get(name, "") not in ("", self._task(name).stub)
            if not solved:
                return f"{name} comes first: this exercise builds on it"
        return ""

    def _head_view(self, result: ExerciseResult, examiner: SandboxExaminer) -> HeadView | None:
        if self.suite.course.suites != "hidden" or result.unfinished or not result.tests:
            return None
        exercise = self.suite.course[result.name]
        student = examiner.module(exercise, seed=0)
        return head_view(exercise, student, self.suite.references[exercise.name])

    def diagnosis(
        self, exercise: Exercise, outcomes: Sequence[Outcome], records: Records
    ) -> Diagnosis | None:
        """Which known mistake is in an exercise that failed, from the record of its tests."""
        course = self.suite.course
        if course.suites != "hidden" or all(test.outcome != "failed" for test in outcomes):
            return None
        if exercise.name not in self._diagnosticians:
            self._diagnosticians[exercise.name] = Diagnostician(course, exercise)
        return self._diagnosticians[exercise.name].diagnose(outcomes, records)


def with_slot(course: Course, names: Sequence[str], zygote: Zygote, body: Callable[[Slot], T]) -> T:
    """Collect the suites of `names` once and give them to `body` as a warm `Slot`."""
    return with_suite(course, names, lambda suite: body(Slot(suite, zygote)))


def _is_unfinished(outcomes: Sequence[Outcome]) -> bool:
    """Whether every failure that costs points is the stub's own."""
    failed = [test for test in outcomes if test.outcome == "failed" and test.max_points]
    earned = any(test.points for test in outcomes)
    return bool(failed) and not earned and all(t.kind == "NotImplementedError" for t in failed)


def _common_problem(outcomes: Sequence[Outcome]) -> str:
    """What to say of an exercise whose every check fails in one and the same way."""
    failed = [test for test in outcomes if test.outcome == "failed"]
    ways = {(test.kind, test.message, test.where) for test in failed}
    earned = sum(test.points for test in outcomes)
    if earned or len(failed) < 2 or len(ways) > 1 or failed[0].kind == "NotImplementedError":
        return ""
    if failed[0].kind in ("SyntaxError", "IndentationError", "TabError"):
        return "your file cannot be loaded, so every check fails in the same way"
    return "every check fails in the same way"


@functools.cache
def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {
        "attention-grader": __version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "pytest": version("pytest"),
    }
