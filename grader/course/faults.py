"""Faults: mistakes that students often make, as text edits of the reference solution."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from msgspec import Struct

from grader.course.course import Exercise
from grader.course.settings import read_settings
from grader.errors import CourseError

NUMBER = "{number}"  # stands in `by` and `says` for a number that varies
MAX_EDITS = 4  # every subset of them is graded, diagnosed and recorded


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    """One edit of a solution's text: `replace`, which stands there once, becomes `by`."""

    replace: str
    by: str


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """One mistake: the edits that make it, what the answers show (`says`), and a hint.

    Any non-empty subset of `edits` is the same mistake: a bias forgotten in one layer or in
    three. `variants` are further lists of edits, each as a whole: the same mistake with an edge
    case handled in another way. `number` is what `{number}` in `by` stands for unless the
    student's file has another.

    `like` names faults whose answers are the same as those of this one. `costs` is its price in
    points, by default a third of the exercise.
    """

    name: str
    says: str
    hint: str
    replace: str = ""
    by: str = ""
    edits: tuple[Edit, ...] = ()
    variants: tuple[tuple[Edit, ...], ...] = ()
    number: str = ""
    like: str = ""
    costs: int | None = None

    @property
    def main_edits(self) -> tuple[Edit, ...]:
        """The edits of which any subset counts."""
        return self.edits or (Edit(self.replace, self.by),)

    def apply(self, solution: str) -> str:
        """Return the solution with all main edits in it."""
        first = next(self.forms())
        return edited(solution, first) or solution

    def saying(self, number: str = "") -> str:
        """Return what the answers show, with the number that they show."""
        return self.says.replace(NUMBER, number or self.number)

    def forms(self, number: str = "") -> Iterator[tuple[Edit, ...]]:
        """Yield the edits of every program with this mistake, that with all main edits first."""
        edits = self.main_edits
        sizes = range(len(edits), 0, -1)
        chosen = (subset for size in sizes for subset in itertools.combinations(edits, size))
        for some in itertools.chain(chosen, self.variants):
            yield tuple(Edit(e.replace, e.by.replace(NUMBER, number or self.number)) for e in some)


class FaultFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `faults.toml`: tables `[[fault]]`."""

    fault: tuple[Fault, ...] = ()


def edited(solution: str, edits: Sequence[Edit]) -> str | None:
    """Return the solution with `edits` in it; None if one of them finds no single place."""
    for edit in edits:
        if solution.count(edit.replace) != 1:
            return None
        solution = solution.replace(edit.replace, edit.by)
    return solution


def load_faults(exercise: Exercise) -> tuple[Fault, ...]:
    """Read the faults of an exercise; raises `CourseError` that names the file and the fault."""
    path = exercise.folder / "faults.toml"
    faults = read_settings(path, FaultFile).fault
    for fault in faults:
        if len(fault.edits) > MAX_EDITS:
            says = f"{path}: fault.{fault.name}: {len(fault.edits)} edits, where {MAX_EDITS} are "
            raise CourseError(f"{says}the most; make two faults of it")
    return faults
