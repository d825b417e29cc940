"""The charts of a report as data: coloured cells and lines with widths. Templates draw them.

Colours differ mainly in lightness, so that colour-blind readers can tell them apart: one hue from
light to dark if no number is negative, otherwise orange below zero and blue above.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grader.report import Excerpt, Outcome, WrongStep, fixed

CELL_WIDTH, CELL_HEIGHT = 42, 26
MARGIN = 22  # pixels for the indices
LIGHT = (247, 249, 252)
BLUE, ORANGE = (8, 64, 129), (166, 54, 3)
NO_NUMBER = "#8a8f98"
FAINT = 0.02  # the smallest weight that is drawn
TOKEN_HEIGHT = 26
TILE, LABEL = 16, 7  # pixels of an empty cell, and of a character
CURVE_WIDTH, CURVE_HEIGHT = 360, 120
GAP, MAX_WIDTH = 24, 1000  # pixels between matrices of a picture, and of a row of them

Grid = list[list[float]]


@dataclass(frozen=True)
class Cell:
    """One number of a tensor: its place in pixels, its colours, its text and its tooltip."""

    x: int
    y: int
    fill: str
    ink: str
    text: str
    title: str


@dataclass(frozen=True)
class Heatmap:
    """A matrix as cells. `rows` and `columns` are pairs of an index and its label's place."""

    title: str
    width: int
    height: int
    cells: tuple[Cell, ...]
    rows: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Line:
    """A line whose width shows how much one token attends to another."""

    y1: int
    y2: int
    width: float
    title: str


def heatmaps(compared: Outcome | WrongStep) -> list[Heatmap]:
    """Return heatmaps of expected, actual and their difference, the first two on one scale.

    The list is empty if the values are not numbers or their shapes or places differ.
    """
    expected, actual = compared.expected, compared.actual
    if expected is None or actual is None:
        return []
    first, second = _grid(expected), _grid(actual)
    if not (first and second) or (expected.shape, expected.at) != (actual.shape, actual.at):
        return []
    at = (*[0] * (2 - len(expected.at)), *expected.at)
    difference = [[b - a for a, b in zip(*rows)] for rows in zip(first, second)]
    both = first + second
    signed = any(number < 0 for row in both for number in row)
    return [
        _heatmap("expected", first, at, both, signed),
        _heatmap(compared.whose, second, at, both, signed),
        _heatmap(f"{compared.whose} − expected", difference, at, difference, signed=True),
    ]


@dataclass(frozen=True)
class Panel:
    """One matrix of a picture: its place, and pairs of a label and its place among the cells."""

    x: int
    y: int
    heatmap: Heatmap
    rows: tuple[tuple[str, int], ...]
    columns: tuple[tuple[str, int], ...]

    @property
    def middle_x(self) -> int:
        """The middle of the columns."""
        return len(self.columns) * CELL_WIDTH // 2

    @property
    def middle_y(self) -> int:
        """The middle of the rows."""
        return len(self.rows) * CELL_HEIGHT // 2


@dataclass(frozen=True)
class Matrices:
    """Matrices side by side, and the scale of their colours, with its ends as text."""

    width: int
    height: int
    left: int  # pixels beside and above the cells of each
    top: int
    turned: bool  # whether the labels of columns are
    panels: tuple[Panel, ...]
    scale: tuple[tuple[float, str], ...]
    least: str
    most: str
    margin = MARGIN

    @property
    def id(self) -> str:
        """The name of the scale, one for all pictures with the same colours."""
        return "grader-positive" if self.least == "0" else "grader-signed"


def matrices(titled: Sequence[tuple[str, Grid]], tokens: Sequence[str]) -> Matrices:
    """Return matrices of one size with one scale of colours; `tokens` label rows and columns."""
    scale = [row for _, grid in titled for row in grid]
    signed = any(number < 0 for row in scale for number in row)
    label = LABEL * max(map(len, tokens), default=2)
    left, top = 22 + label, 36 + (label if tokens else 14)
    panels: list[Panel] = []
    x = y = widest = 0
    for title, grid in titled:
        cells = _heatmap(title, grid, (0, 0), scale, signed)
        width, height = left + cells.width - MARGIN, top + cells.height - MARGIN
        if x and x + width > MAX_WIDTH:
            x, y = 0, y + height + GAP
        rows, columns = (
            tuple((tokens[n] if tokens else str(n), at - MARGIN) for n, at in places)
            for places in (cells.rows, cells.columns)
        )
        panels.append(Panel(x, y, cells, rows, columns))
        x, widest = x + width + GAP, max(widest, x + width, left + LABEL * len(title) + GAP)
    most = max((abs(n) for row in scale for n in row if math.isfinite(n)), default=0.0) or 1.0
    ends = [(0.0, -1.0), (0.5, 0.0), (1.0, 1.0)] if signed else [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)]
    colours = tuple((place, _colours(share, signed)[0]) for place, share in ends)
    return Matrices(
        *(widest, y + height + 40, left, top, bool(tokens), tuple(panels), colours),
        _short(-most) if signed else "0",
        _short(most),
    )


@dataclass(frozen=True)
class Tiles:
    """A matrix as coloured squares. `rows` and `columns` are pairs of a label and its place."""

    width: int
    height: int
    left: int
    top: int
    cells: tuple[Cell, ...]
    rows: tuple[tuple[str, int], ...]
    columns: tuple[tuple[str, int], ...]


def tiles(grid: Grid, rows: Sequence[str], columns: Sequence[str]) -> Tiles:
    """Return a matrix as squares; rows and columns without labels have their indices."""
    row_labels = [rows[n] if n < len(rows) else str(n) for n in range(len(grid))]
    wide = max(map(len, grid), default=0)
    column_labels = [columns[n] if n < len(columns) else str(n) for n in range(wide)]
    left, top = (
        8 + LABEL * max(map(len, labels), default=0) for labels in (row_labels, column_labels)
    )
    numbers = [number for row in grid for number in row]
    largest, signed = max(map(abs, numbers), default=0.0) or 1.0, min(numbers, default=0.0) < 0
    cells = tuple(
        Cell(
            left + column * TILE,
            top + row * TILE,
            *_colours(number / largest, signed),
            "",
            f"{row_labels[row]} → {column_labels[column]}: {fixed(number, 3)}",
        )
        for row, numbers in enumerate(grid)
        for column, number in enumerate(numbers)
    )
    return Tiles(
        *(left + wide * TILE, top + len(grid) * TILE, left, top, cells),
        tuple((label, top + n * TILE + 12) for n, label in enumerate(row_labels)),
        tuple((label, left + n * TILE + 11) for n, label in enumerate(column_labels)),
    )


@dataclass(frozen=True)
class Curve:
    """Losses as the points of a line, and the labels of its axes."""

    points: str
    highest: str
    lowest: str
    first: int
    last: int


def curve(steps: Sequence[int], losses: Sequence[float]) -> Curve | None:
    """Return the line of some losses; None if there are too few, or not all are numbers."""
    numbers = [_number(loss) for loss in losses]
    if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
        return None
    low, high = min(numbers), max(numbers)
    first, last = min(steps), max(steps)
    points = " ".join(
        f"{CURVE_WIDTH * (step - first) / (last - first or 1):.1f},"
        f"{CURVE_HEIGHT * (high - number) / (high - low or 1):.1f}"
        for step, number in zip(steps, numbers)
    )
    return Curve(points, f"{high:.3g}", f"{low:.3g}", first, last)


def _grid(excerpt: Excerpt) -> Grid:
    values = excerpt.values
    if not isinstance(values, list) or not values:
        return []
    rows = values if isinstance(values[0], list) else [values]
    return [[_number(value) for value in row] for row in rows]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _heatmap(title: str, grid: Grid, at: Sequence[int], scale: Grid, signed: bool) -> Heatmap:
    """Draw a grid whose first number is at index `at`, with colours on the scale of `scale`."""
    finite = (abs(number) for row in scale for number in row if math.isfinite(number))
    cells = tuple(_cells(grid, at, max(finite, default=0.0) or 1.0, signed))
    rows = tuple((at[-2] + n, MARGIN + n * CELL_HEIGHT) for n in range(len(grid)))
    columns = tuple((at[-1] + n, MARGIN + n * CELL_WIDTH) for n in range(max(map(len, grid))))
    width, height = MARGIN + len(columns) * CELL_WIDTH, MARGIN + len(rows) * CELL_HEIGHT
    return Heatmap(title, width, height, cells, rows, columns)


def _cells(grid: Grid, at: Sequence[int], largest: float, signed: bool) -> Iterator[Cell]:
    is_mask = all(number in (-1, 0, 1) for numbers in grid for number in numbers)
    *lead, top, left = at
    for row, numbers in enumerate(grid):
        for column, number in enumerate(numbers):
            yield Cell(
                MARGIN + column * CELL_WIDTH,
                MARGIN + row * CELL_HEIGHT,
                *_colours(number / largest, signed),
                f"{number:.0f}" if is_mask else _short(number),
                f"{[*lead, top + row, left + column]}: {number:.6g}",
            )


def _colours(share: float, signed: bool) -> tuple[str, str]:
    """Return the fill for a number between -1 and 1, and a readable text colour on it."""
    if not math.isfinite(share):
        return NO_NUMBER, "#000"
    strength = min(1.0, abs(share)) ** 0.8
    end = ORANGE if share < 0 and signed else BLUE
    mixed = [round(a + (b - a) * strength) for a, b in zip(LIGHT, end)]
    return "#{:02x}{:02x}{:02x}".format(*mixed), "#fff" if _luminance(mixed) < 0.18 else "#000"


def _luminance(colour: Iterable[int]) -> float:
    """Return the relative luminance of an sRGB colour, from 0 to 1 (WCAG 2)."""
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _short(number: float) -> str:
    if not math.isfinite(number):
        return str(number)
    if number == 0 or 0.005 <= abs(number) < 1000:
        return f"{number:.2f}".replace("-0.00", "0.00")
    return f"{number:.0e}".replace("e+0", "e").replace("e-0", "e-")


def attention_lines(weights: Sequence[Sequence[float]], tokens: Sequence[str]) -> list[Line]:
    """Return the lines from each query token, on the left, to the key tokens on the right."""
    return [
        Line(
            int(TOKEN_HEIGHT * (query + 0.5)),
            int(TOKEN_HEIGHT * (key + 0.5)),
            round(min(1.0, abs(weight)) * 7 + 0.3, 1),
            f"{tokens[query]} → {tokens[key]}: {fixed(weight, 3)}",
        )
        for query, row in enumerate(weights)
        for key, weight in enumerate(row)
        if abs(weight) >= FAINT
    ]
