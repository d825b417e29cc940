"""The view of a report in a terminal: 80 columns, and one screen or everything."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from click import style

from grader.report import Excerpt, ExerciseResult, Frame, Mark, Outcome, Report, WrongStep
from grader.reports.charges import cases_lines, checks_line, sum_line
from grader.reports.figures import amount, change
from grader.reports.sketches import sketches

WIDTH = 79
SCREEN = 24  # lines
MANY, FEW = 6, 2  # rows of a tensor
PRINTED, FEW_PRINTED = 6, 2  # lines of a test's output
BAR = 10  # cells of an exercise's bar


@dataclass(frozen=True)
class TextBlock:
    """Some lines of a report. If there is little room, the blocks of the highest rank are left out.

    A block with a `shorter` one is first replaced by that.
    """

    rank: int
    lines: tuple[str, ...]
    shorter: TextBlock | None = None


def render(report: Report, height: int | None = SCREEN) -> str:
    """Return the points of each exercise, then what to fix first; everything without `height`."""
    head = [*_table(report, height), ""]
    closing = [*_closing(report)]
    wrong = sorted(filter(needs_fixing, report.exercises), key=lambda result: result.passed)
    shown = wrong if height is None else wrong[:1]
    if len(shown) < len(wrong):
        closing.insert(0, f"  {len(wrong) - 1} more to look at: the same command with --all")
    room = None if height is None else height - 1 - len(head) - len(closing) - 1
    if not shown or height is None:
        head += _pictures(report, room)
    body = [line for each in shown for line in (*fitting(list(to_fix(each)), room), "")]
    unfinished = next((each for each in report.exercises if each.state == "not started"), None)
    if not body and unfinished is not None:
        body = [f"  next: {unfinished.name}; the task is at the top of its file", ""]
    return "\n".join([*head, *body, *closing]) + "\n"


def _pictures(report: Report, room: int | None) -> list[str]:
    """Return the pictures of passed exercises, each only if there is room for all of it."""
    lines: list[str] = []
    for result in report.exercises:
        if needs_fixing(result) or result.state == "not started":
            continue
        drawn = [*_wrapped(result.parts_line, 2), *(f"  {line}" for line in sketches(result))]
        if drawn and (room is None or len(lines) + len(drawn) < room):
            lines += [*drawn, ""]
    return lines


def fitting(blocks: list[TextBlock], room: int | None) -> list[str]:
    """Return the lines of the blocks that fit; all if `room` is None."""
    while room is not None and len(blocks) > 1 and sum(len(b.lines) for b in blocks) > room:
        last = max(blocks, key=lambda block: block.rank)
        place = blocks.index(last)
        blocks[place : place + 1] = [last.shorter] if last.shorter else []
    lines = [line for block in blocks for line in block.lines]
    return lines if room is None else lines[: max(0, room)]


# --- one exercise ---------------------------------------------------------------------------------


def describe_state(result: ExerciseResult) -> str:
    """Return the state of an exercise in a few words, with the number of checks that fail."""
    if result.state in ("passed", "not started", "not graded"):
        return result.state
    failed = sum(test.is_wrong for test in result.tests)
    skipped = sum(test.outcome == "skipped" and not test.waived for test in result.tests)
    says = f"{failed} of {len(result.tests)} checks fail{'s' * (failed == 1)}"
    if result.points == result.worth:  # a required check may be worth no points
        return f"not done: {says}"
    return f"{says}, {skipped} skipped" if skipped else says


def needs_fixing(result: ExerciseResult) -> bool:
    """Return whether an exercise needs more than a line with its points."""
    wrong = result.first_failure or (not result.tests and result.advice)
    return bool(wrong) and result.state != "not started"


def bar(points: int, max_points: int) -> str:
    """Return points as a bar of `BAR` cells."""
    cells = BAR * min(max(points, 0), max_points) // max_points if max_points > 0 else 0
    return style("█" * cells, fg="green") + style("░" * (BAR - cells), dim=True)


def _table(report: Report, height: int | None) -> Iterator[str]:
    results = report.exercises
    width = max(len(result.name) for result in results)
    shown = results
    if height is not None and len(results) > height // 2:
        wrong = [each for each in results if each.state not in ("passed", "not started")]
        shown = tuple(wrong[: height // 3])
    for result in shown:
        colour = {"passed": "green", "not started": None}.get(result.state, "red")
        score = f"{result.name:<{width}}  {result.points:>3} / {result.max_points:<3}"
        state = style(describe_state(result), fg=colour)
        yield f"  {score} {bar(result.points, result.max_points)}  {state}"
    if len(shown) < len(results):
        yield f"  {len(results) - len(shown)} more: grader status"
    if len(results) > 1:
        total = f"{report.points:>3} / {report.max_points:<3}"
        yield style(f"  {'total':<{width}}  {total}", bold=True)
    yield from mark_lines(report.mark)


def mark_lines(mark: Mark | None) -> Iterator[str]:
    """Yield the calculation of a mark, a line a step; nothing if it is the tests' points."""
    if mark is None or not mark.steps:
        return
    yield ""
    for step in mark.steps:
        says = textwrap.wrap(step.says, WIDTH - 22)
        yield f"  {says[0]:<{WIDTH - 22}}  {change(step.adds):>8}  {amount(step.total):>8}"
        yield from (f"    {more}" for more in says[1:])
    last = f"the mark, of {amount(mark.max_points)}"
    yield style(f"  {last:<{WIDTH - 12}}  {amount(mark.points):>8}", bold=True)


def to_fix(result: ExerciseResult) -> Iterator[TextBlock]:
    """Yield the problems of an exercise; the most important blocks have the lowest rank."""
    test, diagnosis = result.first_failure, result.diagnosis
    title = test.headline if test else result.advice
    yield TextBlock(0, tuple(_wrapped(f"{result.name}: {title}", 0, bold=True)))
    if test is None:
        return
    if result.advice:
        yield TextBlock(3, tuple(_wrapped(result.advice, 4)))
    yield TextBlock(4, tuple(_wrapped(result.parts_line, 4)))
    step = diagnosis.first_wrong_step if diagnosis else None
    yield TextBlock(6 if step else 1, tuple(_wrapped(test.message, 4)))
    yield TextBlock(2, tuple(_diagnosed(result, test)))
    wrong = [line for case in cases_lines(test) for line in _wrapped(f"✗ {case}", 4)]
    yield TextBlock(8, tuple(wrong))
    yield TextBlock(3, tuple(_wrapped(checks_line(result), 4)))
    if step:
        yield TextBlock(2, tuple(_wrapped(f"First wrong step: {step.says}", 4)))
    full, few = (tuple(_values(step or test, rows)) for rows in (MANY, FEW))
    yield TextBlock(5, full, TextBlock(4, few))
    if test.called:
        yield TextBlock(7, tuple(_wrapped(f"the call: {test.called}", 4)))
    yield TextBlock(9, tuple(_repeat(diagnosis.repeat if diagnosis else "")))
    yield TextBlock(3, tuple(_place(test.where)))
    # A student who prints something wants to see it, even on a small screen, but after the
    # mistake.
    full, few = (tuple(_printed(test.printed, lines)) for lines in (PRINTED, FEW_PRINTED))
    yield TextBlock(6, full, TextBlock(3, few))
    hint = style(f"    grader hint {result.name}", dim=True)
    costs = test.max_points or not result.passed
    yield TextBlock(1, (hint if costs else "    This check is worth no points.",))
    if test.required and result.points == result.max_points:
        yield TextBlock(
            1, ("    All points are earned, but the exercise is not done until this passes.",)
        )


def _diagnosed(result: ExerciseResult, test: Outcome) -> Iterator[str]:
    """Yield the mistakes, as a sum of their prices if they have any, and the facts.

    `test` is the failed test above; if only other tests show the mistakes, the line says so.
    """
    diagnosis, priced = result.diagnosis, sum_line(result)
    if diagnosis is None:
        return
    says = priced if priced and not diagnosis.tie else diagnosis.says
    lead = diagnosis.introduction(test) or "→"
    yield from _wrapped(f"{lead} {says}", 4, fg="yellow" if diagnosis.faults else None)
    for other in diagnosis.tie:
        yield from _wrapped(f"→ or: {other.says}", 4, fg="yellow")
    if priced and diagnosis.tie:
        yield from _wrapped(priced, 4)
    for sentence in filter(None, (diagnosis.besides, *diagnosis.facts)):
        yield from _wrapped(f"• {sentence}", 4)


def _repeat(program: str) -> Iterator[str]:
    """Yield a call that shows the facts, uncut, so that it can be copied.

    A long line is broken at a space, which is always between arguments.
    """
    if program:
        yield "    a call that shows it, to repeat in the folder of your file:"
        for line in program.splitlines():
            indent = " " * (2 + min(len(line) - len(line.lstrip()), WIDTH // 2))
            yield from textwrap.wrap(
                line.strip(),
                WIDTH,
                initial_indent=indent,
                subsequent_indent=f"{indent}    ",
                break_long_words=False,
                break_on_hyphens=False,
            )


def _values(compared: Outcome | WrongStep, most: int) -> Iterator[str]:
    """Yield both values, at most `most` rows of each, if they differ in numbers."""
    expected, actual = compared.expected, compared.actual
    numeric = isinstance(compared, WrongStep) or compared.kind in ("value", "finite")
    if expected is None or actual is None or not numeric:
        return
    stage = f"`{compared.stage}` " if isinstance(compared, WrongStep) else ""
    for label, excerpt in (("expected", expected), (compared.whose, actual)):
        yield f"    {stage}{label}{_window(excerpt)}"
        yield from _first_lines(excerpt.text, most, "more rows")


def _first_lines(text: str, most: int, more: str) -> Iterator[str]:
    """Yield the first `most` lines of a text, cut at `WIDTH`, and the number of the others."""
    lines = text.splitlines()
    yield from (_cut(f"      {line}") for line in lines[:most])
    if len(lines) > most:
        yield f"      … {len(lines) - most} {more}"


def _cut(line: str) -> str:
    """Return a line of at most `WIDTH` columns, with `…` in place of the rest."""
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _window(excerpt: Excerpt) -> str:
    """Return which part of a tensor the excerpt shows; empty if it shows all of it."""
    if excerpt.shape is None or excerpt.values is None:
        return ""
    values = excerpt.values
    rows = len(values) if isinstance(values, list) else 0
    columns = len(values[0]) if rows and isinstance(values[0], list) else 0
    if tuple(size for size in (rows, columns) if size) == excerpt.shape:
        return ""
    return f", the part from {list(excerpt.at)} of shape {excerpt.shape}"


def _place(where: Frame | None) -> Iterator[str]:
    if where is None:
        return
    yield f"    {where.file}:{where.line}"
    source = where.source.rstrip()
    indent = len(source) - len(source.lstrip())
    source, caret = source.strip(), where.column - 1 - indent
    if caret > WIDTH - 8:  # cut at the left, so that the place of the error stays on the screen
        cut = caret - WIDTH // 2
        source, caret = "…" + source[cut:], caret - cut + 1
    yield _cut(f"      {source}")
    if caret >= 0:
        yield " " * (6 + caret) + "^"


def _printed(text: str, most: int) -> Iterator[str]:
    if text:
        yield "    your code printed:"
        yield from _first_lines(text, most, "more lines: --format html shows them")


def _closing(report: Report) -> Iterator[str]:
    for note in report.notes:
        yield from _wrapped(f"note: {note}", 2)
    yield style(f"  seed {report.seed}: repeat with --seed {report.seed}", dim=True)


def _wrapped(text: str, indent: int, **styles: Any) -> Iterator[str]:
    """Yield the lines of a text, wrapped at `WIDTH` columns; a long word is broken."""
    for paragraph in text.splitlines():
        for line in textwrap.wrap(paragraph, WIDTH - indent):
            yield " " * indent + (style(line, **styles) if styles else line)
