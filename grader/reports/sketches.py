"""The pictures of a report in characters, for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from grader.report import Drawing, ExerciseResult, LossCurve, Matrix

SHADES, BARS = " ░▒▓█", "▁▂▃▄▅▆▇█"
FAINT = 0.02  # as a part of the largest weight
CURVE = 40  # characters of a line of losses
WIDTH = 75


def sketches(result: ExerciseResult) -> Iterator[str]:
    """Yield the lines of an exercise's curves and pictures, without an indent."""
    for curve in result.curves:
        yield from _curve(curve)
    for picture in result.pictures:
        yield from _picture(picture)


def _curve(curve: LossCurve) -> Iterator[str]:
    losses = [loss for loss in curve.losses if isinstance(loss, float | int)]
    if len(losses) < 2 or not all(map(math.isfinite, losses)):
        return
    low, high = min(losses), max(losses)
    every = max(1, math.ceil(len(losses) / CURVE))
    line = "".join(BARS[_share(loss - low, high - low, len(BARS))] for loss in losses[::every])
    last = f"{losses[0]:.3g} → {losses[-1]:.3g} at step {curve.steps[-1]}"
    yield from textwrap.wrap(f"{curve.caption}: {last}", WIDTH)
    yield f"  {line}"
    for each in curve.reached:
        yield from (f"  {part}" for part in textwrap.wrap(each.says, WIDTH - 2))


def _shade(number: float, high: float) -> int:
    """Return the shade of a number: the lightest shade is for the smallest weight worth a look."""
    return 0 if number < FAINT * high or high <= 0 else 1 + _share(number, high, len(SHADES) - 1)


def _share(part: float, whole: float, levels: int) -> int:
    return min(levels - 1, int(levels * part / whole)) if whole else 0


def _picture(picture: Drawing) -> Iterator[str]:
    yield picture.title
    for line in picture.text.splitlines():
        yield from (f"  {part}" for part in textwrap.wrap(line, WIDTH - 2))
    for matrix in picture.matrices[:1]:
        yield from _shaded(matrix, picture.rows)
    if (more := len(picture.matrices) - 1) > 0:
        yield f"  {more} more head{'s' * (more > 1)}: --format html"


def _shaded(matrix: Matrix, labels: Sequence[str]) -> Iterator[str]:
    """Yield a matrix with a shade, two characters wide, for each number; blank is 0 or less."""
    high = max((number for row in matrix for number in row), default=0.0)
    width = max(map(len, labels), default=0)
    for place, row in enumerate(matrix):
        label = labels[place] if place < len(labels) else ""
        cells = "".join(2 * SHADES[_shade(number, high)] for number in row)
        yield f"  {label:>{width}} {cells}"[:WIDTH].rstrip()
