"""Comments of teachers on lines of students' code.

A comment belongs to the version of the file that it was written about: it is found by the hash of
the file's text, so it stays with an older attempt, and with a file that comes again unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from grader.classroom.ledger import Ledger
from grader.report import Comment, Frame
from grader.sandbox.cells import CELL
from grader.submissions.notebook import cell_of

AROUND = 3  # lines of code shown before and after the line of a comment


@dataclass(frozen=True)
class Spot:
    """A line of a student's file for an exercise, in one version of it."""

    exercise: str
    line: int  # from 1, in the whole text
    version: str

    @property
    def key(self) -> str:
        """What stands for it in the ledger."""
        return f"{self.version} {self.exercise}:{self.line}"


def spot_in(text: str, exercise: str, line: int) -> Spot:
    """Return a line of the version of a file that has this text."""
    version = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Spot(exercise, line, version)


def spots_of(ledger: Ledger, student: str) -> dict[Spot, str]:
    """Return every comment on a student's code, on all versions."""
    found = {}
    for key, text in ledger.comments(student).items():
        version, _, place = key.partition(" ")
        exercise, _, line = place.rpartition(":")
        found[Spot(exercise, int(line), version)] = text
    return found


def comments_on(
    texts: Mapping[str, str], paths: Mapping[str, str], spots: Mapping[Spot, str]
) -> dict[str, tuple[Comment, ...]]:
    """Return by exercise the comments on these texts, in the order of their lines."""
    found: dict[str, list[Comment]] = {}
    for spot, said in sorted(spots.items(), key=lambda each: each[0].line):
        text = texts.get(spot.exercise)
        if text is not None and spot == spot_in(text, spot.exercise, spot.line):
            path = paths.get(spot.exercise, f"{spot.exercise}.py")
            comment = Comment(_frame(text, path, spot.line), said, spot.line)
            found.setdefault(spot.exercise, []).append(comment)
    return {name: tuple(comments) for name, comments in found.items()}


def _frame(text: str, path: str, line: int) -> Frame:
    """Return a line with the lines around it; in a notebook, those of its cell."""
    lines = text.split("\n")
    cell, inside = cell_of(text, line)
    file, own = (f"{path}, cell {cell}", inside) if cell else (path, line)
    first = max(line - AROUND, line - own + 1)
    around = lines[first - 1 : line]
    for each in lines[line : line + AROUND]:
        if each.startswith(CELL):
            break
        around.append(each)
    start = own - (line - first)
    return Frame(file, own, lines[line - 1], around="\n".join(around), start=start)
