"""The proof of an exercise: how much is proven, and the result."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from grader.course.course import Exercise


@dataclass(frozen=True)
class Price:
    """The cost of a mistake: its failed checks, its price, and the points lost in the end."""

    fault: str
    checks: int
    price: int
    lost: int


@dataclass(frozen=True)
class Scope:
    """How much is proven: only some mistakes, if there are any; and whether each gets a `Price`."""

    mistakes: Collection[str] = ()
    prices: bool = False


EVERYTHING = Scope()


@dataclass
class Proof:
    """The result of proving one exercise, and the problems found."""

    exercise: Exercise
    tests: int = 0
    faults: int = 0
    caught: int = 0
    needed: dict[str, list[str]] = field(default_factory=dict)  # case → mistakes it alone rejects
    prices: dict[str, Price] = field(default_factory=dict)  # by mistake, of its dearest form
    problems: list[str] = field(default_factory=list)
    # Mistakes that cost more than their price, because no report names a form; no problems.
    overcharged: dict[str, str] = field(default_factory=dict)
