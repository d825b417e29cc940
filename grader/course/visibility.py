"""What a course lets students see of a test: applied once, before any view is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from grader.course.policy import Policy, When
from grader.report import Diagnosis, ExerciseResult, Explanation, Outcome, Report

E = TypeVar("E", bound=Explanation)
HIDDEN_SENTENCE = "A check that this course does not show."
WAITS = "waits for: "
LATER = "the course shows what differs after the due date"


def for_student(report: Report, policy: Policy, now: datetime | None = None) -> Report:
    """The report without what the course and its tests' `visible` marks hide at this time."""
    over = is_over(policy, now)
    return replace(report, exercises=tuple(_as_shown(ex, policy, over) for ex in report.exercises))


def is_over(policy: Policy, now: datetime | None = None) -> bool:
    """Whether the due date has passed, after which more is shown."""
    return policy.due is None or (now or datetime.now(UTC)) >= policy.due


def _as_shown(exercise: ExerciseResult, policy: Policy, over: bool) -> ExerciseResult:
    least = policy.show.get("tests", "always")
    told = exercise.tests
    if least != "always":
        told = tuple(replace(t, visible=_stricter(t.visible, least)) for t in exercise.tests)
    shown = {test.name for test in told if _is_shown(test, over)}
    wrong = any(test.outcome == "failed" and test.name in shown for test in told)
    explained = wrong and _is_now(policy.show.get("diagnosis", "always"), over)
    return replace(
        exercise,
        tests=tuple(_shown(test, over) for test in _with_reasons(told)),
        diagnosis=_shown_diagnosis(exercise.diagnosis, shown) if explained else None,
        head_view=exercise.head_view if explained else None,
        idea=exercise.idea if _is_now(policy.show.get("idea", "always"), over) else "",
    )


def _stricter(one: str, other: When) -> str:
    order = ("always", "after_due", "never")
    return max(one, other, key=order.index)


def _is_now(when: str, over: bool) -> bool:
    return when == "always" or (when == "after_due" and over)


def _shown_diagnosis(diagnosis: Diagnosis | None, shown: set[str]) -> Diagnosis | None:
    """A diagnosis without what rests on hidden tests alone: that would tell what they check."""
    if diagnosis is None:
        return None
    step = diagnosis.first_wrong_step
    left = _resting_on(diagnosis, shown)
    return left and replace(
        left,
        tie=tuple(filter(None, (_resting_on(other, shown) for other in diagnosis.tie))),
        first_wrong_step=step if step is not None and step.test in shown else None,
    )


def _resting_on(explanation: E, shown: set[str]) -> E | None:
    """An explanation of which every mistake shows in a test that is shown, with those tests."""
    tests = tuple(tuple(name for name in names if name in shown) for names in explanation.tests)
    return replace(explanation, tests=tests) if all(tests) else None


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
    return _is_now(test.visible, over)


def _shown(test: Outcome, over: bool) -> Outcome:
    if _is_shown(test, over):
        return test
    bare = replace(test, message="", kind="", expected=None, actual=None, where=None)
    bare = replace(bare, called="", printed="")
    if test.visible == "after_due":
        return replace(bare, message=LATER if test.outcome == "failed" else "")
    return replace(bare, name="hidden", sentence=HIDDEN_SENTENCE)
