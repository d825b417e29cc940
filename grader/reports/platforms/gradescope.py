"""The results.json of a Gradescope autograder."""

from __future__ import annotations

from typing import Any

from grader.report import Report
from grader.reports.checks import ReportedCheck, checks, summary_lines

VISIBILITY = {"always": "visible", "after_due": "after_due_date", "never": "hidden"}
# The result if the grader itself fails: without a score, Gradescope records none.
FAILED = {
    "output": "The grader failed, and not your code. No score was recorded: tell your teachers.",
    "output_format": "text",
    "stdout_visibility": "hidden",
}


def to_results(report: Report, after_due: Report | None = None) -> dict[str, Any]:
    """Return the results of one submission as JSON data.

    Gradescope usually grades a submission once, before the due date, and itself hides tests until
    that date. So it needs both views: `report`, which students see now, and `after_due`, which
    they see then. Only the tests that are hidden until the due date are taken from `after_due`;
    without it, they are those of `report`.
    """
    now, later = checks(report), checks(after_due or report)
    return {
        "score": round(report.counted, 2),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "output": "\n".join(summary_lines(report)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "tests": [
            _test(b if b.test.visible == "after_due" else a)
            for a, b in zip(now, later, strict=True)
        ],
    }


def _test(check: ReportedCheck) -> dict[str, Any]:
    return {
        "name": f"{check.exercise.title}: {check.name}",
        "number": check.number,
        "score": check.test.points,
        "max_score": check.test.max_points,
        "status": "passed" if check.test.outcome == "passed" else "failed",
        "output": check.details,
        "output_format": "text",
        "visibility": VISIBILITY[check.test.visible],
    }
