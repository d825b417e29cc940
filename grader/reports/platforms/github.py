"""The output in a job of GitHub Actions: the report as text, then a remark at each place to fix.

The runner obeys lines that begin with `::`. So that a student's text gives no order, the report is
printed while orders are switched off, and a remark has no character that could begin an order.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from grader.report import ExerciseResult, Report
from grader.reports import text

OLDER_ORDER = "##["  # an order that may be anywhere in a line
MAX_REMARKS = 10  # remarks of one step: the runner shows no more


def to_commands(report: Report) -> str:
    """Return the text of the report, and the orders that show remarks beside the code."""
    token = f"grader-{secrets.token_hex(16)}"
    shown = text.render(report, None).rstrip("\n")
    remarks = [remark for each in report.exercises for remark in _remarks(each)][:MAX_REMARKS]
    lines = [f"::stop-commands::{token}", shown, f"::{token}::", *remarks]
    return "\n".join(lines).replace(OLDER_ORDER, "## [") + "\n"


def _remarks(result: ExerciseResult) -> Iterator[str]:
    """Yield the remark on an exercise that was begun and does not pass."""
    test, diagnosis = result.first_failure, result.diagnosis
    if test is None or result.state in ("passed", "not started"):
        return
    named = diagnosis.says if diagnosis is not None and diagnosis.faults else ""
    message = "\n".join(filter(None, (test.sentence, test.message, named)))
    place = {"file": f"exercises/{result.name}.py", "line": "1"}
    if test.where is not None:
        place = {"file": test.where.file, "line": str(test.where.line)}
    place["title"] = f"{result.title}: {result.points} of {result.max_points} points"
    properties = ",".join(f"{key}={_property(value)}" for key, value in place.items())
    yield f"::error {properties}::{_data(message)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
