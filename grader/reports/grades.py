"""Marks of a class as CSV that a spreadsheet opens as text and numbers, never as a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

FORMULA = tuple("=+-@＝＋－＠'\t\r\n")


def to_csv(reports: Sequence[Mapping[str, Any]]) -> str:
    """One line a submission: its points, the most there are, and the points of each exercise."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    names = [exercise["name"] for exercise in reports[0]["exercises"]] if reports else []
    writer.writerow(["submission", "points", "max_points", *names])
    for report in reports:
        points = [exercise["points"] for exercise in report["exercises"]]
        writer.writerow(
            [cell(report["submission"]), report["points"], report["max_points"], *points]
        )
    return written.getvalue()


def cell(text: str) -> str:
    """A text that a spreadsheet takes for text: a leading apostrophe where it would compute."""
    visible = text.lstrip(" \u00a0\u200b\u200c\u200d\u2060\ufeff")
    return f"'{text}" if visible.startswith(FORMULA) else text
