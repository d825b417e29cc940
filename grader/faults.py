"""Faults: the mistakes people make, each as one text edit of the reference solution."""

from __future__ import annotations

from dataclasses import dataclass

from grader.catalog import Exercise, read_toml
from grader.errors import CourseError

KEYS = ("name", "replace", "by", "says", "hint")


@dataclass(frozen=True)
class Fault:
    """One mistake: the edit that makes it, what it is (`says`), and where to look (`hint`)."""

    name: str
    replace: str
    by: str
    says: str
    hint: str

    def apply(self, solution: str) -> str:
        """The solution with this mistake in it."""
        return solution.replace(self.replace, self.by, 1)


def load_faults(exercise: Exercise) -> tuple[Fault, ...]:
    """An exercise's faults; raises `CourseError` where one is not a fault."""
    path = exercise.folder / "faults.toml"
    faults = []
    for number, data in enumerate(read_toml(path).get("fault", []), start=1):
        name = data.get("name", f"fault {number}")
        if set(data) != set(KEYS):
            wrong = sorted(set(data) ^ set(KEYS))[0]
            raise CourseError(f"{path}: {name}: a fault has {', '.join(KEYS)}; see `{wrong}`")
        faults.append(Fault(**{key: str(data[key]) for key in KEYS}))
    return tuple(faults)
