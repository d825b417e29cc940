"""Faults: mistakes that students often make, each as one text edit of the reference solution."""

from __future__ import annotations

from msgspec import Struct

from grader.course.course import Exercise
from grader.course.settings import read_settings


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """One mistake: the edit that makes it, what is wrong (`says`), and where to look (`hint`).

    `fails` names the hidden tests that reject it. The same answers give the same failures, so a
    submission that fails other tests has a different mistake. `like` names a fault whose answers
    are the same as those of this one.
    """

    name: str
    fails: frozenset[str]
    replace: str
    by: str
    says: str
    hint: str
    like: str = ""

    def apply(self, solution: str) -> str:
        """Return the solution with this mistake in it."""
        return solution.replace(self.replace, self.by, 1)


class FaultFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `faults.toml`: tables `[[fault]]`."""

    fault: tuple[Fault, ...] = ()


def load_faults(exercise: Exercise) -> tuple[Fault, ...]:
    """Read the faults of an exercise; raises `CourseError` that names the file and the fault."""
    return read_settings(exercise.folder / "faults.toml", FaultFile).fault
