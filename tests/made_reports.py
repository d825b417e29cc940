"""Reports that are made up for tests, with a failure or a diagnosis in them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from grader.report import (
    Diagnosis,
    Excerpt,
    ExerciseResult,
    Explanation,
    Frame,
    Outcome,
    Report,
    WrongStep,
)
from grader.reports import render, text

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def outcome(verdict: Any = "failed", points: int = 2, **changes: Any) -> Outcome:
    """A test that failed, unless another verdict is said."""
    values: dict[str, Any] = {
        "name": "test_x",
        "sentence": "Rows sum to one.",
        "outcome": verdict,
        "points": points if verdict == "passed" else 0,
        "max_points": points,
        "message": "" if verdict == "passed" else "the output is 3, where 1 is expected",
        "kind": "" if verdict == "passed" else "value",
    }
    return Outcome(**{**values, **changes})


def report(*tests: Outcome, advice: str = "", **changes: Any) -> Report:
    """A report on one exercise."""
    exercise = ExerciseResult(
        name="scale",
        title="Scale",
        points=sum(test.points for test in tests),
        max_points=sum(test.max_points for test in tests),
        advice=advice,
        tests=tests,
    )
    values: dict[str, Any] = {
        "submission": "s001",
        "seed": 7,
        "suites": "hidden",
        "confinement": ("separate process",),
        "exercises": (exercise,),
    }
    return Report(**{**values, **changes})


EXCERPT = Excerpt("1.0000  2.0000", (1, 2), "float64", (0, 0), [[1.0, 2.0]])
FAILED = report(
    outcome("passed"),
    outcome(expected=EXCERPT, actual=EXCERPT, where=Frame("scale.py", 3, "return x", 5)),
)
STEP = WrongStep(
    "test_x", "weights", "`weights` is 2 at [0, 1], where 1 is expected", EXCERPT, EXCERPT
)
DIAGNOSIS = Diagnosis(
    ("softmax_over_queries",),
    "The softmax runs over the queries.",
    "Which weights sum to 1?",
    tests=(("test_x",),),
    tie=(Explanation(("other",), "Or something else.", "Look there.", (("test_x",),)),),
    first_wrong_step=STEP,
)


def diagnosed(*tests: Outcome, diagnosis: Diagnosis = DIAGNOSIS) -> Report:
    """The same, with a diagnosis."""
    found = report(*tests)
    return replace(found, exercises=(replace(found.exercises[0], diagnosis=diagnosis),))


def shown(form: str, what: Report) -> str:
    """A view of a report; `text` is for a screen of the usual height."""
    return render(what, form, text.SCREEN)
