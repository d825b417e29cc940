"""Decides, once and before any view is made, what students may see of a report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar, get_args

from grader.course.policy import Policy, When
from grader.report import (
    Charge,
    Diagnosis,
    ExerciseResult,
    Explanation,
    Outcome,
    Report,
)

E = TypeVar("E", bound=Explanation)
HIDDEN_SENTENCE = "A check that this course does not show."
SKIPPED_UNTIL = 'skipped until "{}" passes'  # the needed test: its name; for students its sentence
LATER = "the course shows the details after the due date"


def for_student(report: Report, policy: Policy, now: datetime | None = None) -> Report:
    """Return the report without the parts that the course or `visible` marks hide at this time."""
    past_due = is_past_due(policy, now, due_of(report))
    exercises = tuple(_visible_part(result, policy, past_due) for result in report.exercises)
    return replace(report, exercises=exercises)


def after_due(report: Report, policy: Policy) -> Report:
    """Return the report as its student may see it after the due date."""
    due = due_of(report) or policy.due
    return for_student(report, policy, due + timedelta(seconds=1) if due else None)


def is_past_due(policy: Policy, now: datetime | None = None, own: datetime | None = None) -> bool:
    """Whether the due date, or a student's `own`, has passed; true if the course has none."""
    due = own or policy.due
    return due is None or (now or datetime.now(UTC)) >= due


def due_of(report: Report) -> datetime | None:
    """Return the end of a report's extension; None if it has none."""
    return datetime.fromisoformat(report.due) if report.due else None


def _visible_part(exercise: ExerciseResult, policy: Policy, past_due: bool) -> ExerciseResult:
    tests = exercise.tests
    if least := policy.show.get("tests"):
        stricter = (max(test.visible, least, key=get_args(When).index) for test in tests)
        tests = tuple(replace(test, visible=visible) for test, visible in zip(tests, stricter))
    names = {test.name for test in tests}
    shown = {test.name for test in tests if _allows(test.visible, past_due)}
    failed = {test.name for test in tests if test.outcome == "failed"}
    explained = bool(failed & shown) and _allows(policy.show.get("diagnosis", "always"), past_due)
    sentences = {
        test.name: HIDDEN_SENTENCE if test.visible == "never" else test.sentence for test in tests
    }
    diagnosis = _visible_diagnosis(exercise.diagnosis, shown, failed) if explained else None
    priced = _names(diagnosis, exercise.charges)
    if not priced:
        tests = tuple(replace(test, consequence=False) for test in tests)
    return replace(
        exercise,
        tests=tuple(
            _redacted(_with_reason(test, sentences), past_due)
            if diagnosis
            else _redacted(_unexplained(_with_reason(test, sentences)), past_due)
            for test in tests
        ),
        diagnosis=diagnosis,
        charges=exercise.charges if priced else (),
        head_view=exercise.head_view if explained else None,
        # What tests found about a training goes if any of them is hidden: it may be that one's.
        curves=exercise.curves
        if shown >= names
        else tuple(replace(curve, reached=()) for curve in exercise.curves),
        idea=exercise.idea if _allows(policy.show.get("idea", "always"), past_due) else "",
    )


def _allows(when: str, past_due: bool) -> bool:
    return when == "always" or (when == "after_due" and past_due)


def _visible_diagnosis(
    diagnosis: Diagnosis | None, shown: set[str], failed: set[str]
) -> Diagnosis | None:
    """Return the part of a diagnosis that rests on shown tests; the rest reveals hidden ones."""
    visible = diagnosis and _supported(diagnosis, shown)
    if visible is None:
        return None
    tie = tuple(filter(None, (_supported(other, shown) for other in visible.tie)))
    visible = replace(visible, tie=tie, signature="", secret="", members={}, explains_cases=())
    if failed <= shown:
        return visible
    # The rest may be about a hidden test.
    return replace(visible, besides="", facts=(), repeat="")


def _names(diagnosis: Diagnosis | None, charges: Collection[Charge]) -> bool:
    """Return whether the shown part of a diagnosis names the charged mistakes."""
    charged = {charge.fault for charge in charges}
    explanations = (diagnosis, *diagnosis.tie) if diagnosis else ()
    return any(charged == set(each.faults) for each in explanations)


def _supported(explanation: E, shown: set[str]) -> E | None:
    """Return an explanation with only its shown tests; None if all tests of a mistake are hidden.

    A mistake that fails no test is proven by other answers, and reveals no hidden test.
    """
    tests = tuple(tuple(name for name in names if name in shown) for names in explanation.tests)
    is_hidden = any(names and not seen for names, seen in zip(explanation.tests, tests))
    return None if is_hidden else replace(explanation, tests=tests)


def _with_reason(test: Outcome, sentences: Mapping[str, str]) -> Outcome:
    """Replace the name of the test that a skipped test needs by its sentence."""
    before, after = SKIPPED_UNTIL.split("{}")
    if test.outcome != "skipped" or not test.message.startswith(before):
        return test
    needed = test.message.removeprefix(before).removesuffix(after)
    return replace(test, message=SKIPPED_UNTIL.format(sentences.get(needed, HIDDEN_SENTENCE)))


def _unexplained(test: Outcome) -> Outcome:
    """Return a test without the remarks on whether a mistake explains its wrong cases."""
    return replace(test, wrong=tuple(replace(case, explained=False) for case in test.wrong))


def _redacted(test: Outcome, past_due: bool) -> Outcome:
    if _allows(test.visible, past_due):
        return test
    result = (test.outcome, test.points, test.max_points)
    if test.visible == "after_due":
        message = LATER if test.outcome == "failed" else ""
        shown = Outcome(test.name, test.sentence, *result, message, visible=test.visible)
        return replace(shown, waived=test.waived)
    return Outcome("hidden", HIDDEN_SENTENCE, *result, visible=test.visible)
