"""What a Gradescope autograder leaves in results.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grader.reports.checks import Check, amount, checks, counted

VISIBILITY = {"always": "visible", "after_due": "after_due_date", "never": "hidden"}


def to_results(
    report: Mapping[str, Any], after_due: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The results of one submission, as data.

    Gradescope grades a submission once, mostly before the due date, and keeps tests back until
    then by itself. So give it both: the `report` as students see it now, and as they see it
    `after_due`. From the second come the tests that wait for that date, and nothing else; without
    it, they are told as in the first.
    """
    points, _ = counted(report)
    now, later = checks(report), checks(after_due or report)
    return {
        "score": round(points, 2),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "output": "\n".join(_told(report)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "tests": [
            _test(b if b.visible == "after_due" else a) for a, b in zip(now, later, strict=True)
        ],
    }


def _test(check: Check) -> dict[str, Any]:
    return {
        "name": f"{check.title}: {check.name}",
        "number": check.number,
        "score": check.points,
        "max_score": check.max_points,
        "status": "passed" if check.outcome == "passed" else "failed",
        "output": check.says,
        "output_format": "text",
        "visibility": VISIBILITY[check.visible],
    }


def _told(report: Mapping[str, Any]) -> Iterator[str]:
    for exercise in report["exercises"]:
        if exercise["advice"] and exercise["tests"]:
            yield f"{exercise['title']}: {exercise['advice']}"
        if change := exercise.get("adjustment"):
            sign = "+" if change["points"] > 0 else ""
            yield f"{exercise['title']}: {sign}{amount(change['points'])} points: {change['why']}"
    if mark := report.get("mark"):
        yield from filter(None, [mark["says"]])
    yield from (f"note: {note}" for note in report["notes"])
