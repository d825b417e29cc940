"""The content of a marked notebook of any format: questions, each with its tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from grader.course.stubs import END, START
from grader.errors import RequestError

FINEST = 60  # the largest denominator of points, so that 0.33 is a third

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True)
class CodeCell:
    """The code of a cell, with the number of the cell."""

    cell: int
    code: str


@dataclass(frozen=True)
class MarkedTest:
    """One test cell: all of its code, and the part that students see."""

    cell: int
    name: str
    code: str
    shown: str
    points: Fraction | None = None  # None: a share of the question's remaining points
    message: str = ""  # the text that students read if it fails
    problem: str = ""  # why it cannot be converted into a test
    original: str = ""  # the text of the cell, if the code was made from it

    @property
    def is_hidden(self) -> bool:
        """Whether students do not see all of it."""
        return self.code != self.shown


@dataclass
class Question:
    """One question: its text, the answer with its marks, and the tests."""

    cell: int
    name: str
    prose: list[str] = field(default_factory=list)
    answers: list[CodeCell] = field(default_factory=list)
    cases: list[MarkedTest] = field(default_factory=list)
    points: Fraction | None = None  # points of all cases together; None: their sum


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


def with_marks(code: str, begin: re.Pattern[str], end: re.Pattern[str], cell: int) -> str:
    """Return code with the course's marks in place of the lines that begin and end a solution."""
    return "\n".join(_marked(code.split("\n"), begin, end, cell))


def _marked(
    lines: Sequence[str], begin: re.Pattern[str], end: re.Pattern[str], cell: int
) -> Iterator[str]:
    opened = ""
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        if end.search(line):
            if not opened:
                raise unopened(cell, line)
            opened = ""
            yield indent + END
        elif begin.search(line):
            if opened:
                raise unclosed(cell, opened)
            opened = line
            yield indent + START
        else:
            yield line
    if opened:
        raise unclosed(cell, opened)


def unclosed(cell: int, mark: str) -> RequestError:
    """Return the error about a mark that nothing closes."""
    shown = " ".join(mark.split())
    remedy = f"add `{shown.replace('BEGIN', 'END')}` after it"
    return RequestError(f"cell {cell}: `{shown}` is not closed", remedy)


def unopened(cell: int, mark: str) -> RequestError:
    """Return the error about a mark that closes nothing."""
    shown = " ".join(mark.split())
    remedy = f"add `{shown.replace('END', 'BEGIN')}` before it, or remove it"
    return RequestError(f"cell {cell}: `{shown}` closes nothing", remedy)


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
