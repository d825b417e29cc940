"""The terminal's view: 80 columns and one screen, or everything when asked."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from click import style

WIDTH = 79
SCREEN = 24  # lines
MANY, FEW = 6, 2  # rows of a tensor
PRINTED = 6  # lines of a test's output
BAR = 10  # cells of an exercise's bar


@dataclass(frozen=True)
class Part:
    """Some lines of the report; of what does not fit, the parts of the highest rank go first.

    Instead of going, a part may become a `shorter` one.
    """

    rank: int
    lines: tuple[str, ...]
    shorter: Part | None = None


def render(report: Mapping[str, Any], height: int | None = SCREEN) -> str:
    """Points of each exercise, then what to mend first; everything if there is no `height`."""
    head = [*_table(report, height), ""]
    closing = [*_closing(report)]
    wrong = [exercise for exercise in report["exercises"] if is_to_mend(exercise)]
    wrong.sort(key=lambda exercise: exercise["points"] == exercise["max_points"])
    blocks = wrong if height is None else wrong[:1]
    if len(blocks) < len(wrong):
        closing.insert(0, f"  {len(wrong) - 1} more to look at: grader check --all")
    room = None if height is None else height - 1 - len(head) - len(closing) - 1
    body: list[str] = []
    for exercise in blocks:
        body += [*fitting(list(to_mend(exercise)), room), ""]
    unfinished = next((e for e in report["exercises"] if state(e) == "not started"), None)
    if not body and unfinished is not None:
        body = [f"  next: {unfinished['name']}; the task is at the top of its file", ""]
    return "\n".join([*head, *body, *closing]) + "\n"


def fitting(parts: list[Part], room: int | None) -> list[str]:
    """The lines of the parts for which there is room."""
    while room is not None and len(parts) > 1 and sum(len(part.lines) for part in parts) > room:
        last = max(parts, key=lambda part: part.rank)
        place = parts.index(last)
        parts[place : place + 1] = [last.shorter] if last.shorter else []
    lines = [line for part in parts for line in part.lines]
    return lines if room is None else lines[: max(0, room)]


# --- of an exercise -------------------------------------------------------------------------------


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
    if exercise["unfinished"]:
        return "not started"
    waiting = sum(test["outcome"] == "skipped" for test in exercise["tests"])
    waits = f", {waiting} wait for it" if waiting else ""
    return f"{len(failed)} of {len(exercise['tests'])} checks fail{waits}"


def is_to_mend(exercise: Mapping[str, Any]) -> bool:
    """Whether there is something to say of an exercise beside its points."""
    if state(exercise) == "not started":
        return False
    return bool(first_failure(exercise) or (not exercise["tests"] and exercise["advice"]))


def bar(points: int, worth: int) -> str:
    """Points as a bar."""
    cells = BAR * points // worth if worth else 0
    return style("█" * cells, fg="green") + style("░" * (BAR - cells), dim=True)


def _table(report: Mapping[str, Any], height: int | None) -> Iterator[str]:
    exercises = report["exercises"]
    width = max(len(exercise["name"]) for exercise in exercises)
    shown = exercises
    if height is not None and len(exercises) > height // 2:
        shown = [e for e in exercises if state(e) not in ("passed", "not started")][: height // 3]
    for exercise in shown:
        points, worth = exercise["points"], exercise["max_points"]
        word = state(exercise)
        colour = {"passed": "green", "not started": None}.get(word, "red")
        score = f"{exercise['name']:<{width}}  {points:>3} / {worth:<3}"
        yield f"  {score} {bar(points, worth)}  {style(word, fg=colour)}"
    if len(shown) < len(exercises):
        yield f"  {len(exercises) - len(shown)} more: grader status"
    if len(exercises) > 1:
        total = f"{report['points']:>3} / {report['max_points']:<3}"
        yield style(f"  {'total':<{width}}  {total}", bold=True)


def to_mend(exercise: Mapping[str, Any]) -> Iterator[Part]:
    """What is wrong with an exercise: what to know first has the lowest rank."""
    name, test, diagnosis = exercise["name"], first_failure(exercise), exercise["diagnosis"]
    title = test["sentence"] if test else exercise["advice"]
    yield Part(0, tuple(_wrapped(f"{name}: {title}", 0, bold=True)))
    if test is None:
        return
    if exercise["advice"]:
        yield Part(3, tuple(_wrapped(exercise["advice"], 4)))
    step = diagnosis["first_wrong_step"] if diagnosis else None
    yield Part(6 if step else 1, tuple(_wrapped(test["message"], 4)))
    yield Part(2, tuple(_diagnosed(diagnosis)))
    if step:
        yield Part(2, tuple(_wrapped(f"First wrong step: {step['says']}", 4)))
    full, few = (tuple(_values(step or test, bool(step), rows)) for rows in (MANY, FEW))
    yield Part(5, full, Part(4, few))
    if test["called"]:
        yield Part(7, tuple(_wrapped(f"called as {test['called']}", 4)))
    yield Part(3, tuple(_place(test["where"])))
    yield Part(8, tuple(_printed(test["printed"])))
    if test["max_points"] or exercise["points"] < exercise["max_points"]:
        yield Part(1, (style(f"    grader hint {name}", dim=True),))
    else:
        yield Part(1, ("    This check costs no points.",))


def _diagnosed(diagnosis: Mapping[str, Any] | None) -> Iterator[str]:
    if not diagnosis:
        return
    yield from _wrapped(f"→ {diagnosis['says']}", 4, fg="yellow" if diagnosis["faults"] else None)
    for other in diagnosis["tie"]:
        yield from _wrapped(f"→ or: {other['says']}", 4, fg="yellow")


def _values(part: Mapping[str, Any], is_step: bool, most: int) -> Iterator[str]:
    expected, actual = part["expected"], part["actual"]
    if not expected or not actual:
        return
    if not is_step and part["kind"] not in ("value", "finite"):
        return
    of = f" `{part['stage']}`" if is_step else ""
    for label, excerpt in (("expected", expected), ("yours", actual)):
        yield f"    {label}{of}{_from(excerpt)}"
        rows = excerpt["text"].splitlines()
        yield from (f"      {row}"[:WIDTH] for row in rows[:most])
        if len(rows) > most:
            yield f"      … {len(rows) - most} rows more"


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


def _printed(text: str) -> Iterator[str]:
    if not text:
        return
    yield "    your code printed:"
    rows = text.splitlines()
    yield from (f"      {row}"[:WIDTH] for row in rows[:PRINTED])
    if len(rows) > PRINTED:
        yield f"      … {len(rows) - PRINTED} lines more: --format html shows them"


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
