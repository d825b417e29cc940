"""Faults: the mistakes people make, each as one text edit of the reference solution."""

from __future__ import annotations

from dataclasses import dataclass

from grader.course.course import Exercise, read_toml
from grader.errors import CourseError

KEYS = ("name", "fails", "replace", "by", "says", "hint")


@dataclass(frozen=True)
class Fault:
    """One mistake: the edit that makes it, what it is (`says`), and where to look (`hint`).

    `fails` names the hidden tests that reject it. Tests are functions of the answers they get, so
    a submission that fails others has made another mistake. `like` names a fault that no answer
    tells from this one, if there is one.
    """

    name: str
    fails: frozenset[str]
    replace: str
    by: str
    says: str
    hint: str
    like: str = ""

    def apply(self, solution: str) -> str:
        """The solution with this mistake in it."""
        return solution.replace(self.replace, self.by, 1)


def load_faults(exercise: Exercise) -> tuple[Fault, ...]:
    """An exercise's faults; raises `CourseError` where one is not a fault."""
    path = exercise.folder / "faults.toml"
    faults = []
    for number, data in enumerate(read_toml(path).get("fault", []), start=1):
        name = data.get("name", f"fault {number}")
        if set(data) - {"like"} != set(KEYS):
            wrong = sorted((set(data) - {"like"}) ^ set(KEYS))[0]
            raise CourseError(f"{path}: {name}: a fault has {', '.join(KEYS)}; see `{wrong}`")
        texts = {key: str(value) for key, value in data.items() if key != "fails"}
        faults.append(Fault(fails=frozenset(data["fails"]), **texts))
    return tuple(faults)
