"""The results.json of an external grader of PrairieLearn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from grader.report import ExerciseResult, Report
from grader.reports.checks import ReportedCheck, checks, summary_lines

MAX_BYTES = 1_000_000  # bytes: PrairieLearn accepts no larger file
CUT = "The details are left out: they are longer than PrairieLearn takes."
# The result if the grader itself fails: such an attempt does not count.
FAILED = {
    "gradable": False,
    "format_errors": ["The grader failed, and not your code. Tell your teachers."],
}


def to_results(report: Report) -> dict[str, Any]:
    """Return the results of one submission as JSON data.

    Code that cannot be loaded is not gradable: it costs neither points nor an attempt.
    """
    problems = [_problem(result) for result in report.exercises]
    if all(problems):
        return {"gradable": False, "score": 0.0, "format_errors": [*map(str, problems)]}
    results = {
        "gradable": True,
        "score": _share(report.counted, report.max_counted),
        "message": report.advice,
        "output": "\n".join(summary_lines(report)),
        "tests": list(_tests(report)),
    }
    return results if _size(results) <= MAX_BYTES else _without_details(results)


def _problem(result: ExerciseResult) -> str:
    """Return why an exercise could not be loaded, or nothing if it was."""
    if not result.tests:
        return f"{result.title}: {result.advice}"
    failed = [test for test in result.tests if test.outcome == "failed"]
    if failed and not result.points and all(test.loading for test in failed):
        return f"{result.title}: {failed[0].message}"
    return ""


def _share(points: float, most: float) -> float:
    """Return points as a part of the maximum, from 0 to 1."""
    return round(min(max(points / most, 0.0), 1.0), 6) if most else 0.0


def _tests(report: Report) -> Iterator[dict[str, Any]]:
    silent = tuple(map(_without_output, report.exercises))  # printed text has a field of its own
    for check, quiet in zip(checks(report), checks(replace(report, exercises=silent)), strict=True):
        yield _test(check, quiet.details)


def _without_output(result: ExerciseResult) -> ExerciseResult:
    return replace(result, tests=tuple(replace(test, printed="") for test in result.tests))


def _test(check: ReportedCheck, message: str) -> dict[str, Any]:
    return {
        "name": check.name,
        "description": check.exercise.title,
        "points": check.test.points,
        "max_points": check.test.max_points,
        "message": message,
        "output": check.test.printed,
    }


def _without_details(results: dict[str, Any]) -> dict[str, Any]:
    tests = [{**test, "message": "", "output": ""} for test in results["tests"]]
    return {**results, "output": CUT, "tests": tests}


def _size(results: dict[str, Any]) -> int:
    return len(json.dumps(results, indent=2))
