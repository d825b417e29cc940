"""What a mark looks like in a gradebook, and whether both count out of the same points."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from grader.errors import RequestError
from grader.classroom.gradebooks.people import SHOWN, Graded

_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)?")
SMALLEST = Decimal("0.01")


@dataclass(frozen=True)
class Scale:
    """How a gradebook counts: the most `points` (None where it does not say), and if with commas.

    `scaled` says that our marks are to be turned into its points, `closed` that it passes over
    marks below 0 and above its most points.
    """

    points: Decimal | None = None
    comma: bool = False
    scaled: bool = False
    closed: bool = False

    def value(self, graded: Graded) -> Decimal:
        """A mark in the gradebook's points, with two decimals."""
        points = Decimal(str(graded.points))
        if self.scaled and self.points is not None:
            points *= self.points / Decimal(str(graded.max_points))
        return points.quantize(SMALLEST, ROUND_HALF_UP)

    def written(self, graded: Graded) -> str:
        """A mark as the gradebook writes it."""
        text = shown(self.value(graded))
        return text.replace(".", ",") if self.comma else text


def number(text: str) -> Decimal | None:
    """A positive number or 0, with a decimal point or comma."""
    text = text.strip()
    return Decimal(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None


def has_commas(texts: Iterable[str]) -> bool:
    """Whether one of the numbers among these has a decimal comma."""
    return any("," in text and number(text) is not None for text in texts)


def check(scale: Scale, graded: Sequence[Graded]) -> None:
    """Refuse marks that are none, or that count out of something else than the gradebook does."""
    worths = set()
    for one in graded:
        if not Decimal(str(one.points)).is_finite() or not Decimal(str(one.max_points)).is_finite():
            raise RequestError(f"the mark of {one.student} is no number", "grade it again")
        worths.add(Decimal(str(one.max_points)).quantize(SMALLEST, ROUND_HALF_UP))
    ours = " or ".join(shown(worth) for worth in sorted(worths))
    if scale.scaled and (not scale.points or not all(worths)):
        theirs = "no points" if scale.points is None else f"{shown(scale.points)} points"
        raise RequestError(
            f"nothing can be scaled: the gradebook says {theirs}, the marks are out of {ours}",
            "leave out --scale",
        )
    if not scale.scaled and scale.points is not None and worths - {scale.points}:
        raise RequestError(
            f"the gradebook counts out of {shown(scale.points)} points, the marks out of {ours}",
            f"--scale turns them into marks out of {shown(scale.points)}",
        )
    if scale.closed and scale.points is not None:
        _refuse_beyond(scale, scale.points, graded)


def _refuse_beyond(scale: Scale, most: Decimal, graded: Iterable[Graded]) -> None:
    values = ((one.student, scale.value(one)) for one in graded)
    beyond = [f"{student} ({shown(value)})" for student, value in values if not 0 <= value <= most]
    if beyond:
        more = f" and {len(beyond) - SHOWN} more" if len(beyond) > SHOWN else ""
        raise RequestError(
            f"the gradebook takes marks from 0 to {shown(most)}, and would pass over "
            f"{', '.join(beyond[:SHOWN])}{more}",
            "raise the most points there and download it again",
        )


def shown(value: Decimal) -> str:
    """A number without zeros at its end."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
