"""What pictures are made of: cells with colours, lines with widths. Templates draw them.

Colours are told apart by lightness first, so that they are by everybody: one hue from light to
dark where all numbers are weights, orange against blue around zero where signs matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CELL_WIDTH, CELL_HEIGHT = 42, 26
MARGIN = 22  # for the indices
LIGHT = (247, 249, 252)
BLUE, ORANGE = (8, 64, 129), (166, 54, 3)
NO_NUMBER = "#8a8f98"
FAINT = 0.02  # a weight below this has no line
TOKEN_HEIGHT, TOKEN_WIDTH = 26, 64
LINES_WIDTH = 110

Grid = list[list[float]]


@dataclass(frozen=True)
class Cell:
    """One number of a tensor: its place in the picture, its colours, and what hovering tells."""

    x: int
    y: int
    fill: str
    ink: str
    text: str
    title: str


@dataclass(frozen=True)
class Heatmap:
    """A matrix as cells; `rows` and `columns` are indices with the places of their labels."""

    title: str
    width: int
    height: int
    cells: tuple[Cell, ...]
    rows: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Line:
    """How much one token attends to another."""

    y1: int
    y2: int
    width: float
    title: str


def heatmaps(expected: Mapping[str, Any] | None, actual: Mapping[str, Any] | None) -> list[Heatmap]:
    """Expected, actual and their difference, on one scale; nothing where shapes do not agree."""
    first, second = _grid(expected), _grid(actual)
    if expected is None or actual is None or not first or not second:
        return []
    if expected["shape"] != actual["shape"] or expected["at"] != actual["at"]:
        return []
    difference = [[b - a for a, b in zip(*rows)] for rows in zip(first, second)]
    at = list(expected["at"])[-2:]
    at = [0] * (2 - len(at)) + at
    lead = list(expected["at"])[:-2]
    numbers = [number for grid in (first, second) for row in grid for number in row]
    return [
        _heatmap("expected", first, at, lead, numbers),
        _heatmap("yours", second, at, lead, numbers),
        _heatmap("yours − expected", difference, at, lead, None),
    ]


def _grid(part: Mapping[str, Any] | None) -> Grid:
    """An excerpt's numbers as rows; empty where it holds none."""
    values = None if part is None else part["values"]
    if isinstance(values, bool) or not isinstance(values, list) or not values:
        return []
    rows = values if isinstance(values[0], list) else [values]
    return [[_number(value) for value in row] for row in rows]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _heatmap(
    title: str, grid: Grid, at: Sequence[int], lead: Sequence[int], scale: list[float] | None
) -> Heatmap:
    numbers = scale if scale is not None else [number for row in grid for number in row]
    finite = [abs(number) for number in numbers if math.isfinite(number)]
    signed = scale is None or any(number < 0 for number in numbers)
    largest = max(finite, default=0.0) or 1.0
    cells = tuple(_cells(grid, at, lead, largest, signed))
    row_count, column_count = len(grid), max(map(len, grid))
    return Heatmap(
        title,
        MARGIN + column_count * CELL_WIDTH,
        MARGIN + row_count * CELL_HEIGHT,
        cells,
        tuple((at[0] + n, MARGIN + n * CELL_HEIGHT) for n in range(row_count)),
        tuple((at[1] + n, MARGIN + n * CELL_WIDTH) for n in range(column_count)),
    )


def _cells(
    grid: Grid, at: Sequence[int], lead: Sequence[int], largest: float, signed: bool
) -> Iterator[Cell]:
    whole = all(number in (-1, 0, 1) for numbers in grid for number in numbers)  # a mask
    for row, numbers in enumerate(grid):
        for column, number in enumerate(numbers):
            fill, ink = _colours(number / largest, signed)
            index = [*lead, at[0] + row, at[1] + column]
            yield Cell(
                MARGIN + column * CELL_WIDTH,
                MARGIN + row * CELL_HEIGHT,
                fill,
                ink,
                f"{number:.0f}" if whole else _short(number),
                f"{index}: {number:.6g}",
            )


def _colours(share: float, signed: bool) -> tuple[str, str]:
    """The colour of a number between -1 and 1, and one that can be read on it."""
    if not math.isfinite(share):
        return NO_NUMBER, "#000"
    strength = min(1.0, abs(share)) ** 0.8
    end = ORANGE if share < 0 and signed else BLUE
    mixed = [round(a + (b - a) * strength) for a, b in zip(LIGHT, end)]
    return "#{:02x}{:02x}{:02x}".format(*mixed), "#fff" if _luminance(mixed) < 0.18 else "#000"


def _luminance(colour: Iterable[int]) -> float:
    """How light a colour is, as WCAG defines it."""
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
    """The lines between a sentence's tokens, those that look on the left."""
    return [
        Line(
            TOKEN_HEIGHT * query + TOKEN_HEIGHT // 2,
            TOKEN_HEIGHT * key + TOKEN_HEIGHT // 2,
            round(min(1.0, abs(weight)) * 7 + 0.3, 1),
            f"{tokens[query]} → {tokens[key]}: {weight:.3f}",
        )
        for query, row in enumerate(weights)
        for key, weight in enumerate(row)
        if abs(weight) >= FAINT
    ]
