"""What a course lets students see of a test: applied once, before any view is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from grader.records import ExerciseResult, Outcome, Report

HIDDEN_SENTENCE = "A check that this course does not show."
WAITS = "waits for: "
LATER = "the course shows what differs after the due date"


def for_student(report: Report, due: datetime | None, now: datetime | None = None) -> Report:
    """The report without what its tests' `visible` marks hide from students at this time."""
    over = due is None or (now or datetime.now(UTC)) >= due
    return replace(report, exercises=tuple(_as_shown(ex, over) for ex in report.exercises))


def _as_shown(exercise: ExerciseResult, over: bool) -> ExerciseResult:
    tests = tuple(_shown(test, over) for test in _with_reasons(exercise.tests))
    # A diagnosis that rests on hidden tests alone would tell what they check.
    shown = {test.name for test in exercise.tests if _is_shown(test, over)}
    diagnosis = exercise.diagnosis
    if diagnosis is not None:
        left = tuple(tuple(name for name in names if name in shown) for names in diagnosis.tests)
        step = diagnosis.first_wrong_step
        diagnosis = replace(
            diagnosis,
            tests=left,
            first_wrong_step=step if step is not None and step.test in shown else None,
        )
        if not all(left):
            diagnosis = None
    return replace(exercise, tests=tests, diagnosis=diagnosis)


def _with_reasons(tests: Sequence[Outcome]) -> list[Outcome]:
    """Say of a skipped test which promise it waits for, unless that one is hidden."""
    sentences = {
        test.name: HIDDEN_SENTENCE if test.visible == "never" else test.sentence for test in tests
    }
    return [
        replace(test, message=WAITS + sentences.get(test.message.removeprefix(WAITS), "another"))
        if test.message.startswith(WAITS)
        else test
        for test in tests
    ]


def _is_shown(test: Outcome, over: bool) -> bool:
    return test.visible == "always" or (test.visible == "after_due" and over)


def _shown(test: Outcome, over: bool) -> Outcome:
    if _is_shown(test, over):
        return test
    bare = replace(test, message="", kind="", expected=None, actual=None, where=None)
    bare = replace(bare, called="", printed="")
    if test.visible == "after_due":
        return replace(bare, message=LATER if test.outcome == "failed" else "")
    return replace(bare, name="hidden", sentence=HIDDEN_SENTENCE)
