"""What an autograder of Classroom 50 leaves in result.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from grader.reports.checks import checks, counted

SCHEMA = "classroom50/result/v1"


def to_result(
    report: Mapping[str, Any], environment: Mapping[str, str], now: str
) -> dict[str, Any]:
    """The result of one submission, as data.

    `environment` is the runner's, `now` the time in UTC (ISO 8601). The format knows only whole
    points, and none above the most: a mark with decimals or extra credit is rounded and cut.
    """
    points, most = counted(report)
    commit = environment.get("COMMIT_URL", "")
    tests = [
        {
            "test-name": f"{check.exercise}: {check.name}",
            "passed": check.outcome == "passed",
            "score": check.points,
            "max-score": check.max_points,
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
        "score": max(0, min(_whole(points), _whole(most))),
        "max-score": _whole(most),
        "tests": tests,
    }


def _whole(points: float) -> int:
    return math.floor(points + 0.5)
