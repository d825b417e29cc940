"""The terminal's view: 80 columns, the first thing to mend of each exercise."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from click import style

WIDTH = 79
PRINTED = 6  # lines of a test's output
BAR = 10  # cells of an exercise's bar


def render(report: Mapping[str, Any]) -> str:
    """Points of each exercise, then what to mend first in each."""
    lines = [*_table(report), ""]
    for exercise in report["exercises"]:
        block = list(_to_mend(exercise))
        if len(block) > 1 and lines[-1]:
            lines.append("")
        lines += [*block, ""] if len(block) > 1 else block
    if lines[-1]:
        lines.append("")
    lines += _closing(report)
    return "\n".join(lines) + "\n"


def first_failure(exercise: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The test to mend first, or None; one that costs points comes before one that informs."""
    wrong = [test for test in exercise["tests"] if test["outcome"] in ("failed", "error")]
    return min(wrong, key=lambda test: test["points"] == test["max_points"], default=None)


def state(exercise: Mapping[str, Any]) -> str:
    """One word or two on how far an exercise is: passed, not started, …"""
    failed = [test for test in exercise["tests"] if test["outcome"] in ("failed", "error")]
    if not exercise["tests"]:
        return "not graded"
    if exercise["points"] == exercise["max_points"]:
        return "passed"
    stub = f"your code raised NotImplementedError: fill in {exercise['name']}"
    if not exercise["points"] and all(t["message"] == stub for t in failed if t["max_points"]):
        return "not started"
    waiting = sum(test["outcome"] == "skipped" for test in exercise["tests"])
    waits = f", {waiting} wait for it" if waiting else ""
    return f"{len(failed)} of {len(exercise['tests'])} checks fail{waits}"


def _table(report: Mapping[str, Any]) -> Iterator[str]:
    width = max(len(exercise["name"]) for exercise in report["exercises"])
    for exercise in report["exercises"]:
        points, worth = exercise["points"], exercise["max_points"]
        cells = BAR * points // worth if worth else 0
        bar = style("█" * cells, fg="green") + style("░" * (BAR - cells), dim=True)
        word = state(exercise)
        colour = {"passed": "green", "not started": None}.get(word, "red")
        score = f"{exercise['name']:<{width}}  {points:>3} / {worth:<3}"
        yield f"  {score} {bar}  {style(word, fg=colour)}"
    if len(report["exercises"]) > 1:
        total = f"{report['points']:>3} / {report['max_points']:<3}"
        yield style(f"  {'total':<{width}}  {total}", bold=True)


def _to_mend(exercise: Mapping[str, Any]) -> Iterator[str]:
    name, test = exercise["name"], first_failure(exercise)
    if test is None or state(exercise) == "not started":
        if exercise["advice"]:
            yield from _wrapped(f"{name}: {exercise['advice']}", 0, bold=True)
        return
    yield from _wrapped(f"{name}: {exercise['advice'] or test['sentence']}", 0, bold=True)
    if test["message"]:
        yield from _wrapped(test["message"], 4)
    yield from _values(test)
    if test["called"]:
        yield from _wrapped(f"called as {test['called']}", 4)
    yield from _place(test["where"])
    if test["printed"]:
        yield "    your code printed:"
        rows = test["printed"].splitlines()
        yield from (f"      {row}"[:WIDTH] for row in rows[:PRINTED])
        if len(rows) > PRINTED:
            yield f"      … {len(rows) - PRINTED} lines more: --format html shows them"
    if test["max_points"] or exercise["points"] < exercise["max_points"]:
        yield style(f"    grader hint {name}", dim=True)
    else:
        yield "    This check costs no points."


def _values(test: Mapping[str, Any]) -> Iterator[str]:
    expected, actual = test["expected"], test["actual"]
    if not expected or not actual or test["kind"] not in ("value", "finite"):
        return
    for label, part in (("expected", expected), ("yours", actual)):
        yield f"    {label}{_from(part)}"
        yield from (f"      {row}"[:WIDTH] for row in part["text"].splitlines())


def _from(part: Mapping[str, Any]) -> str:
    """Which part of a tensor is shown, where it is not all of it."""
    if part["shape"] is None or part["values"] is None:
        return ""
    values = part["values"]
    rows = len(values) if isinstance(values, list) else 0
    columns = len(values[0]) if rows and isinstance(values[0], list) else 0
    shown = [size for size in (rows, columns) if size]
    if shown == list(part["shape"]):
        return ""
    return f", the part from {list(part['at'])} of shape {tuple(part['shape'])}"


def _place(where: Mapping[str, Any] | None) -> Iterator[str]:
    if not where:
        return
    yield f"    {where['file']}:{where['line']}"
    source = where["source"].rstrip()
    indent = len(source) - len(source.lstrip())
    source, caret = source.strip(), where["column"] - 1 - indent
    if caret > WIDTH - 8:  # keep the place of the error on the screen
        cut = caret - WIDTH // 2
        source, caret = "…" + source[cut:], caret - cut + 1
    yield f"      {source}"[:WIDTH]
    if caret >= 0:
        yield " " * (6 + caret) + "^"


def _closing(report: Mapping[str, Any]) -> Iterator[str]:
    for note in report["notes"]:
        yield from _wrapped(f"note: {note}", 2)
    if report["suites"] == "public":
        yield from _wrapped(
            "Graded by the public tests that came with this copy; the hidden tests decide "
            "the points.",
            2,
        )
    seed = report["seed"]
    yield style(f"  seed {seed}: repeat with --seed {seed}", dim=True)


def _wrapped(text: str, indent: int, **styles: Any) -> Iterator[str]:
    for paragraph in text.splitlines():
        for line in textwrap.wrap(
            paragraph, WIDTH - indent, break_long_words=True, drop_whitespace=True
        ):
            yield " " * indent + (style(line, **styles) if styles else line)
