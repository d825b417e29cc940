"""The operations that a worker reports: their numbers, their results, and hidden ones."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate

from grader.errors import StudentFailure
from grader.report import Frame
from grader.sandbox import wire

CALLED_BACK = "unseen.callbacks"
# The ways in which code hides operations, by their names in the watch's report.
HIDING = {
    "unseen.watch": (
        "your code switched off the grader's watch over it; leave torch's modes and profiler, "
        "and Python's tracing, alone"
    ),
    "unseen.operations": (
        "your code runs operations where the grader cannot see which function calls them; leave "
        "torch's modes and compilers alone"
    ),
    "unseen.threads": (
        "your code computes in a thread that is older than the call, outlives it, or is not one of "
        "Python's; start and join threads of Python within the call, or use none"
    ),
}


@dataclass(frozen=True)
class MadeTensor:
    """A tensor that a function returned to the student's code."""

    shape: tuple[int, ...] = (0,)
    item_bytes: int = 0

    @property
    def elements(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of its elements."""
        return self.elements * self.item_bytes


@dataclass
class OperationCounts:
    """The operations that ran while the student's code was watched, by name.

    `largest` is the largest tensor that one of torch's functions returned, `peak` the most bytes
    that the tensors of one call took at once, if `watch` is "memory". If it is "work", `ran` is
    how often each line ran, as "file:line".
    """

    watch: wire.Watch = "all"
    counts: Counter[str] = field(default_factory=Counter)
    largest: MadeTensor = field(default_factory=MadeTensor)
    peak: int = 0
    ran: Counter[str] = field(default_factory=Counter)
    begins: list[str] = field(default_factory=list)  # where nan begins, if `watch` is "nan"
    _unseen: Counter[str] = field(default_factory=Counter)

    @property
    def operations(self) -> int:
        """The number of calls of torch's functions, without kernels."""
        called = sum(n for name, n in self.counts.items() if name.startswith("torch."))
        return called + self._unseen[CALLED_BACK]

    def add(self, operations: Mapping[str, int]) -> None:
        """Add the report of a call's watch."""
        for name, count in operations.items():
            if name.startswith("made."):
                self._add_made(name.removeprefix("made.").split("x"), count)
                continue
            if name == "peak.bytes":
                self.peak = max(self.peak, count)
                continue
            if name.startswith("ran."):
                self.ran[name.removeprefix("ran.")] += count
                continue
            if name.startswith("begins."):
                self.begins.append(name.removeprefix("begins."))
                continue
            counts = self._unseen if name.startswith("unseen.") else self.counts
            counts[name] += count

    def _add_made(self, sizes: Sequence[str], item_bytes: int) -> None:
        if all(size.isdecimal() and len(size) < 19 for size in sizes):
            made = MadeTensor(tuple(map(int, sizes)), item_bytes)
            self.largest = max(self.largest, made, key=lambda made: made.elements)

    def check(self, forbidden: Sequence[str] = ()) -> None:
        """Raise `StudentFailure` if the code hid operations, or ran one that is `forbidden`.

        An operation is forbidden if its name matches a pattern such as `torch*.layer_norm`.
        """
        for name, sentence in HIDING.items():
            if self._unseen[name]:
                raise StudentFailure("Forbidden", sentence)
        is_forbidden = _any_of(tuple(forbidden)).match
        for name in self.counts:
            plain = "torch." + name.partition(".")[2]
            if is_forbidden(plain):
                raise forbidden_call(plain)


@functools.cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return a regular expression for the names that one of the patterns matches."""
    return re.compile("|".join(map(translate, patterns or ("",))))


def forbidden_call(name: str, *frames: Frame) -> StudentFailure:
    """Return the failure for a call that the exercise forbids."""
    message = f"{name} does the work that this exercise asks you to write"
    return StudentFailure("Forbidden", message, frames)
