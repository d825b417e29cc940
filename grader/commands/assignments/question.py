"""The content of a marked notebook of any format: questions, each with its tests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction

from grader.errors import RequestError

FINEST = 60  # the largest denominator of points: 0.33 is a third
MAX_SENTENCE = 160  # characters
SENTENCE = re.compile(r"[A-Z`*_].*?\w.*?(?:[.:?!](?=\s|$)|$)")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True)
class CodeCell:
    """The code of a cell without marks, and the lines that were marked, counted from 1."""

    cell: int
    code: str
    marked: frozenset[int] = frozenset()
    part: str = "plain"  # or "answer", or of a test "shown" or "hidden", which is all of it


@dataclass(frozen=True)
class MarkedTest:
    """One test cell: all of its code, and the part that students see."""

    cell: int
    name: str
    code: str
    shown: str
    points: Fraction | int | None = None  # None: what the question leaves for it
    message: str = ""  # what students read if it fails
    problem: str = ""  # why it cannot be turned into a test
    original: str = ""  # the text of the cell, if the code is made of it


@dataclass
class Question:
    """One question: what it asks, the answer, and the tests."""

    cell: int
    name: str
    prose: list[str] = field(default_factory=list)
    answers: list[CodeCell] = field(default_factory=list)
    cases: list[MarkedTest] = field(default_factory=list)
    points: Fraction | None = None  # points of all cases together; None: their sum

    def share_points(self) -> list[Fraction]:
        """Give cases without points what is left for them; return the points of all."""
        given = [Fraction(case.points) for case in self.cases if case.points is not None]
        total = Fraction(not given) if self.points is None else self.points
        left = max(total - sum(given), Fraction(0))
        share = left / max(len(self.cases) - len(given), 1)
        worth = [share if case.points is None else Fraction(case.points) for case in self.cases]
        self.cases = [replace(case, points=points) for case, points in zip(self.cases, worth)]
        return worth


@dataclass
class Assignment:
    """A marked notebook: its questions, its other code, and sentences about what is left out."""

    questions: list[Question] = field(default_factory=list)
    plain: list[CodeCell] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def points_in(value: object, cell: int) -> Fraction | None:
    """Return points as an exact number; None if there are none. Raises `RequestError`."""
    if value is None or value == "":
        return None
    try:
        points = Fraction(str(value)).limit_denominator(FINEST)
    except (ValueError, ZeroDivisionError):
        points = Fraction(-1)
    if isinstance(value, bool) or not 0 <= points <= 10_000:
        raise RequestError(f"cell {cell}: {value!r} are no points", "write a number there")
    return points


def cleaned(text: str) -> str:
    """Return a text with plain line endings, without characters that no source may hold."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return CONTROLS.sub("", text).encode("utf-8", "replace").decode()


def one_line(value: object) -> str:
    """Return a name that an author gave as one line."""
    return cleaned(" ".join(str(value or "").split()))[:80]


def first_line(code: str) -> str:
    """Return the first non-empty line of a cell, shortened."""
    line = next((line.strip() for line in code.splitlines() if line.strip()), "")
    return line if len(line) <= 60 else f"{line[:59]}…"


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, in one line; empty if it begins with something else."""
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    found = SENTENCE.match(paragraph)
    if text[:1].isspace() or not found or len(found[0]) > MAX_SENTENCE:
        return ""
    return f"{found[0].rstrip('.:')}."
