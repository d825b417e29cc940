"""The branches of an exercise, and the promises that its cases ask in each.

A branch is one value of an option, such as True. A promise is a property that cases ask of a call,
such as its gradients. Code that keeps a promise in one branch may break it in another, so a pair
that no case asks is a problem, unless the author gives a reason. `watched_calls` finds both.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from grader.course.course import NOT_ASKED_FILE, Exercise
from grader.course.settings import convert, read_data
from grader.course.suite_text import SUITE
from grader.errors import did_you_mean

AND = " and "
# Code may keep each of two of these promises, but not both at once.
JOINT = ("gradients", "random draws", "half precision", "large numbers")
PROMISES = (
    *("values", *JOINT, "training mode", "views", "an axis of size 1", "arguments left alone"),
    *("work", "memory", "another device", *map(AND.join, itertools.combinations(JOINT, 2))),
)
AXES = "axes of "  # begins the name of the option for a tensor's number of axes


class Branch(NamedTuple):
    """One value of an option of a function or method."""

    call: str
    option: str
    value: str

    def __str__(self) -> str:
        if self.option.startswith(AXES):
            return f"{self.call}({self.option.removeprefix(AXES)} of {self.value} axes)"
        return f"{self.call}({self.option}={self.value})"


class Unasked(NamedTuple):
    """A branch, as text, and a promise."""

    branch: str
    promise: str


@dataclass(frozen=True)
class AskedPromises:
    """How many cases ask each promise in each branch of an exercise."""

    counts: dict[Branch, Counter[str]] = field(default_factory=dict)
    unwatched: set[Branch] = field(default_factory=set)  # cases in which a model is trained

    @property
    def options(self) -> list[list[Branch]]:
        """The branches of each option that has several."""
        by_option = itertools.groupby(sorted(self.counts), key=lambda branch: branch[:2])
        return [found for _, branches in by_option if len(found := [*branches]) > 1]

    @property
    def missing(self) -> list[Unasked]:
        """The pairs that no case asks, though one asks the promise in another branch."""
        found = []
        for branches in self.options:
            asked = {promise for branch in branches for promise in self.counts[branch]}
            for branch, promise in itertools.product(branches, PROMISES):
                lacking = {promise, *promise.split(AND)} - self.counts[branch].keys()
                if promise in asked and lacking == {promise} and branch not in self.unwatched:
                    found.append(Unasked(str(branch), promise))
        return found

    def problems(self, reasons: Mapping[Unasked, str]) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the pairs, as sentences, each after the file to fix."""
        missing, names = self.missing, ([str(branch) for branch in self.counts], PROMISES)
        for branch, promise in missing:
            if (branch, promise) not in reasons:
                says = f"no case asks for {promise} with {branch}; add one, or say why not in "
                yield SUITE, says + NOT_ASKED_FILE
        for pair, why in reasons.items():
            problem = "" if why.strip() else "it has no reason"
            if pair not in missing:
                problem = "a case asks for it, or none has to; take it out"
            for name, known in zip(pair, names):
                if name not in known:
                    problem = f"there is no {name}{did_you_mean(name, known)}"
            if problem:
                yield NOT_ASKED_FILE, f"{pair.branch}: {pair.promise}: {problem}"

    def lines(self, reasons: Collection[Unasked]) -> Iterator[str]:
        """Yield the table; ✗ marks a pair that is missing, and "why" one with a reason."""
        marks = dict.fromkeys(self.missing, "✗") | dict.fromkeys(reasons, "why")
        for branches in self.options:
            widths = [max(4, len(branch.value)) for branch in branches]
            rows = [(f"{branches[0].call}: {branches[0].option}", [b.value for b in branches])]
            for promise in PROMISES:
                counts = [self.counts[branch][promise] for branch in branches]
                pairs = [Unasked(str(branch), promise) for branch in branches]
                if any(counts):
                    cells = [marks.get(pair, f"{n or '–'}") for pair, n in zip(pairs, counts)]
                    rows.append((promise, cells))
            for name, cells in rows:
                yield "  ".join([f"  {name:<38}", *map(str.rjust, cells, widths)])
            yield ""


def load_reasons(exercise: Exercise) -> dict[Unasked, str]:
    """Return why pairs are not asked, as the author says it; raises `CourseError`."""
    path = exercise.folder / NOT_ASKED_FILE
    tables = read_data(path) if path.is_file() else {}
    return {
        Unasked(branch, promise.strip()): why
        for branch, reasons in convert(tables, dict[str, dict[str, str]], str(path)).items()
        for promises, why in reasons.items()
        for promise in promises.split(",")
    }
