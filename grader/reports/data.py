"""The JSON of a report: the public format `attention-grader/report/v1` (docs/report-format.md)."""

from __future__ import annotations

from typing import Any

import msgspec

from grader.report import Report

SCHEMA = "attention-grader/report/v1"


def to_data(report: Report) -> dict[str, Any]:
    """Return the report as plain JSON data."""
    body = msgspec.to_builtins(report)
    return {
        "schema": SCHEMA,
        "submission": body.pop("submission"),
        "points": report.points,
        "max_points": report.max_points,
        "advice": report.advice,
        **body,
    }


def to_json(report: Report) -> str:
    """Return the report as one JSON object, indented."""
    return msgspec.json.format(msgspec.json.encode(to_data(report)), indent=2).decode() + "\n"


def to_json_line(report: Report) -> str:
    """Return the report as one JSON object on a line of its own."""
    return msgspec.json.encode(to_data(report)).decode() + "\n"
