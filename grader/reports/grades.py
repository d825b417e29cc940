"""Marks of a class as CSV that a spreadsheet opens as text and numbers, never as a formula."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from grader.reports.checks import amount, counted

FORMULA = tuple("=+-@＝＋－＠'\t\r\n")
COLUMNS = (
    "submission", "points", "max_points", "name", "section", "earned", "late_days", "attempt",
    "submitted", "flags",
)  # fmt: skip


def write_csv(stream: TextIO, names: Sequence[str], reports: Iterable[Mapping[str, Any]]) -> None:
    """One line a submission: what it counts, whose it is, and the points of the exercises `names`.

    Points are those of the mark where there is one, an exercise's those with its adjustment; an
    exercise that was not graded has an empty cell. The reports are taken one by one. A file as
    `stream` is to be opened with `newline=""`.
    """
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([*COLUMNS, *map(cell, names)])
    for report in reports:
        points = {exercise["name"]: _adjusted(exercise) for exercise in report["exercises"]}
        writer.writerow([*_told(report), *(points.get(name, "") for name in names)])


def _told(report: Mapping[str, Any]) -> list[str]:
    """What comes before the exercises, in the order of `COLUMNS`."""
    points, most = counted(report)
    mark, person = report.get("mark"), report.get("person") or {}
    return [
        cell(report["submission"]),
        amount(points),
        amount(most),
        cell(person.get("name", "")),
        cell(person.get("section", "")),
        amount(mark["earned"]) if mark else amount(report["points"]),
        amount(mark["late_days"]) if mark else "0",
        str(report.get("attempt", 1)),
        cell(report.get("submitted", "")),
        cell("; ".join(report.get("flags", ()))),
    ]


def _adjusted(exercise: Mapping[str, Any]) -> str:
    change = exercise.get("adjustment")
    return amount(exercise["points"] + (change["points"] if change else 0))


def cell(text: str) -> str:
    """A text that a spreadsheet takes for text: a leading apostrophe where it would compute."""
    visible = text.lstrip(" \u00a0\u200b\u200c\u200d\u2060\ufeff")
    return f"'{text}" if visible.startswith(FORMULA) else text
