"""What a course lets students see of a test: applied once, before any view is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from grader.records import Outcome, Report

HIDDEN_SENTENCE = "A check that this course does not show."
WAITS = "waits for: "
LATER = "the course shows what differs after the due date"


def for_student(report: Report, due: datetime | None, now: datetime | None = None) -> Report:
    """The report without what its tests' `visible` marks hide from students at this time."""
    over = due is None or (now or datetime.now(UTC)) >= due
    exercises = tuple(
        replace(exercise, tests=tuple(_shown(test, over) for test in _with_reasons(exercise.tests)))
        for exercise in report.exercises
    )
    return replace(report, exercises=exercises)


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


def _shown(test: Outcome, over: bool) -> Outcome:
    if test.visible == "always" or (test.visible == "after_due" and over):
        return test
    bare = replace(test, message="", kind="", expected=None, actual=None, where=None)
    bare = replace(bare, called="", printed="")
    if test.visible == "after_due":
        return replace(bare, message=LATER if test.outcome == "failed" else "")
    return replace(bare, name="hidden", sentence=HIDDEN_SENTENCE)
