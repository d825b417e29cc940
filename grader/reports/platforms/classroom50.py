"""The result.json of a Classroom 50 autograder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from grader.report import Report
from grader.reports.checks import checks

SCHEMA = "classroom50/result/v1"


def to_result(report: Report, environment: Mapping[str, str], now: str) -> dict[str, Any]:
    """Return the result of one submission as JSON data.

    `environment` holds the runner's variables; `now` is the time in UTC (ISO 8601). The format has
    only whole points, from 0 to the maximum: a mark with decimals is rounded, extra credit is cut.
    """
    most = _whole(report.max_counted)
    commit = environment.get("COMMIT_URL", "")
    tests = [
        {
            "test-name": f"{check.exercise.name}: {check.name}",
            "passed": check.test.outcome == "passed",
            "score": check.test.points,
            "max-score": check.test.max_points,
        }
        for check in checks(report)
    ]
    return {
        "schema": SCHEMA,
        "classroom": environment.get("CLASSROOM", ""),
        "assignment": environment.get("ASSIGNMENT", ""),
        "submission": environment.get("SUBMISSION_TAG", ""),
        "commit": commit,
        "release": environment.get("RELEASE_URL", ""),
        "review": environment.get("REVIEW_URL", "") or commit,
        "datetime": now,
        "score": max(0, min(_whole(report.counted), most)),
        "max-score": most,
        "tests": tests,
    }


def _whole(points: float) -> int:
    return math.floor(points + 0.5)
