"""From a submission to what was found of it: the named steps in between."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from grader.course.course import Course, Exercise
from grader.grading.diagnosis.search import Diagnostician
from grader.errors import GraderError
from grader.grading.examiner import Records, SandboxExaminer
from grader.grading.outcomes import points_of
from grader.grading.picture import head_view
from grader.report import Diagnosis, ExerciseResult, HeadView, Outcome, Report, clean
from grader.grading.reporter import Reporter, not_run, problem_of
from grader.sandbox.host.connection import Desk
from grader.sandbox.host.worker import Worker
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission
from grader.grading.suite import Suite, with_suite

T = TypeVar("T")
Progress = Callable[[str], None]


def silent(name: str) -> None:
    """The progress of whoever does not watch."""


@dataclass(frozen=True)
class Found:
    """What was found of some exercises, under which layers; `records` are those of the last."""

    results: tuple[ExerciseResult, ...]
    confinement: tuple[str, ...]
    records: Records


@dataclass(frozen=True)
class Slot:
    """A warm suite and the zygote of its workers: grades one submission after another."""

    suite: Suite
    zygote: Zygote
    _diagnosticians: dict[str, Diagnostician] = field(default_factory=dict, compare=False)

    @functools.cached_property
    def reporter(self) -> Reporter:
        """Who makes the reports of this slot's course."""
        return Reporter(self.suite.course)

    def beside(self, zygote: Zygote) -> Slot:
        """The same warm suite with another zygote, for a process forked from this one."""
        return replace(self, zygote=zygote)

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
        found = self.results(submission, names, seed, progress)
        report = self.reporter.report(submission, found.results, seed, found.confinement)
        return report, found.records

    def results(
        self, submission: Submission, names: Sequence[str], seed: int, progress: Progress = silent
    ) -> Found:
        """What the exercises `names` of one submission were found to be worth, and why."""
        desk = Desk(lambda: Worker(self.zygote))
        examiner = SandboxExaminer(self.suite.references, submission, desk, seed)
        results: list[ExerciseResult] = []
        try:
            for name in names:
                progress(name)
                result = self._exercise(self.suite.course[name], examiner)
                results.append(result if result.passed else self._explained(result, examiner))
        finally:
            desk.close()
        return Found(tuple(results), desk.layers, examiner.records)

    def _exercise(self, exercise: Exercise, examiner: SandboxExaminer) -> ExerciseResult:
        if problem := problem_of(examiner.submission, exercise.name):
            return not_run(exercise, problem)
        outcomes = self.suite.run(examiner, exercise.name)
        return ExerciseResult(
            name=exercise.name,
            title=exercise.title,
            points=sum(outcome.points for outcome in outcomes),
            max_points=sum(points_of(item) for item in self.suite.items.get(exercise.name, [])),
            advice=_common_problem(outcomes),
            tests=outcomes,
            unfinished=_is_unfinished(outcomes),
        )

    def _explained(self, result: ExerciseResult, examiner: SandboxExaminer) -> ExerciseResult:
        """The result with which mistake it is, and what it looks like."""
        try:
            return replace(
                result,
                diagnosis=self.diagnosis(
                    self.suite.course[result.name], result.tests, examiner.records
                ),
                head_view=self._head_view(result, examiner),
            )
        except GraderError:
            raise
        except Exception as error:  # a mark without its explanation is better than no mark
            told = f"the grader could not say which mistake it is ({type(error).__name__}: {error})"
            return replace(result, advice=clean(told))

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
