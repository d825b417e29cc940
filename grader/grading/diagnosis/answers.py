"""The answer of one program to one case, in a form that can be compared with another answer.

An answer is values, or the kind and the subject of an error. The wording of an error, the names of
types and the graph behind a tensor do not count.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grader.grading import compare
from grader.grading.words import is_gradient
from grader.sandbox.host.proxies import Remote

TOLERANCE = {  # dtype: (relative, absolute)
    **compare.TOLERANCE,
    torch.float64: (1e-6, 1e-8),
    # Twice as much as in a check, because both wrong answers may be computed in another order.
    torch.float16: (2e-2, 2e-3),
    torch.bfloat16: (6e-2, 2e-2),
}
NEAR = 20.0  # times the tolerance: a smaller difference may be absent with other inputs
LEAST = 1e-7  # the least tolerance of a sum
MAX_NUMBERS = 20_000  # of one answer; all longer answers count as the same
ROUNDING = {  # dtype: (relative, absolute), for operations in another order
    **TOLERANCE,
    torch.float64: (1e-11, 1e-14),
    torch.float32: (3e-6, 1e-7),
}
Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]
Form = tuple[tuple[Any, ...], ...]  # (place, dtype, shape) of a tensor, else (place, text)
NUMBERS = ("int", "float", "bool")  # Python types whose values count as numbers
NON_FINITE = 3.7e3, 5.3e3, -7.1e3  # nan and both infinities in sketches, which are sums
# The subject of an error, by words in its message. The first match counts.
SUBJECTS = (
    ("in-place", r"in-?place|leaf variable|view was created"),
    ("contiguous", r"contiguous|view size is not compatible"),
    ("dtype", r"dtype|scalar type|same type|must be .*(Long|Float|Double|Bool|Byte|floating)"),
    ("device", r"device|meta tensor"),
    ("graph", r"does not require grad|grad_fn|backward"),
    ("index", r"index|indices|out of (range|bounds)|Dimension out"),
    ("shape", r"shape|size|dimension|broadcast|expand|mat1|batch1|subscript"),
)
REFUSALS = ("ValueError", "AssertionError", "RuntimeError", "IndexError")
# If code raises one of these by hand, it does not refuse a call.
NO_REFUSALS = ("KeyError", "NotImplementedError")


@dataclass(frozen=True)
class Leaf:
    """One value within an answer: a tensor of float64 numbers, or the text of anything else."""

    place: str
    value: Tensor | None
    dtype: object = None
    text: str = ""


@dataclass(frozen=True)
class Raised:
    """An error: raised by torch or Python, with its subject, or by the code itself."""

    kind: str
    subject: str

    def same(
        self, other: Answer, *, exact: bool = False, within: tuple[float, float] | None = None
    ) -> bool:
        """Return whether another answer is the same error."""
        return self == other

    def is_near(self, other: Answer, within: tuple[float, float] | None = None) -> bool:
        """Return False: an error is near to nothing."""
        return False


@dataclass(frozen=True, eq=False)
class Values:
    """Values: their form (places, dtypes, shapes) and all their numbers as one vector."""

    form: Form
    numbers: Tensor  # float64

    @functools.cached_property
    def sketch(self) -> tuple[float, float]:
        """A weighted sum of the numbers, and its tolerance for the same numbers."""
        return self.sketched(exact=False)

    def sketched(self, *, exact: bool) -> tuple[float, float]:
        """Return the sketch; if `exact`, with only the tolerance that another order needs."""
        relative, absolute = _tolerances(self.form, exact=exact)
        weights = _weights(len(self.numbers))
        nan, high, low = NON_FINITE
        plain = np.nan_to_num(self._array, nan=nan, posinf=high, neginf=low).clip(-1e12, 1e12)
        slack = weights * (absolute + relative * np.abs(plain))
        return float(weights @ plain), 2 * float(slack.sum()) + LEAST

    def same(
        self, other: Answer, *, exact: bool = False, within: tuple[float, float] | None = None
    ) -> bool:
        """Return whether another answer has the same form and numbers.

        `within` is a relative and an absolute tolerance in place of those of the dtypes.
        """
        if not isinstance(other, Values) or self.form != other.form:
            return False
        if self._array.tobytes() == other._array.tobytes():  # mostly true, and fast
            return True
        if within:
            return not self._differing(other, within=within).any()
        return self._may_be(other) and not self._differing(other, exact=exact).any()

    def _may_be(self, other: Values, factor: float = 1.0) -> bool:
        """Return False if the sketches differ, which is much faster than to compare all numbers."""
        (ours, slack), (theirs, _) = self.sketch, other.sketch
        return abs(ours - theirs) <= factor * slack or abs(ours) >= 1e9

    def leaves(self) -> Iterator[Leaf]:
        """Yield the values that the answer is made of."""
        start = 0
        for place, *rest in self.form:
            name = " ".join(str(part) for part in place)
            if len(rest) == 2:
                dtype, shape = rest
                end = start + math.prod(shape)
                yield Leaf(name, self.numbers[start:end].view(shape), dtype)
            elif rest[0] in NUMBERS:
                end = start + 1
                yield Leaf(name, self.numbers[start], rest[0])
            else:
                end = start
                yield Leaf(name, None, text=str(rest[0]))
            start = end

    def is_near(self, other: Answer, within: tuple[float, float] | None = None) -> bool:
        """Return whether another answer differs by less than `NEAR` times the tolerance."""
        if not isinstance(other, Values) or self.form != other.form:
            return False
        if within:
            return not self._differing(other, factor=NEAR, within=within).any()
        return self._may_be(other, NEAR) and not self._differing(other, factor=NEAR).any()

    def finite_differences(self, reference: Answer) -> int:
        """Return how many finite numbers differ from the reference's."""
        finite = np.isfinite(self._array)
        if isinstance(reference, Values) and self.form == reference.form:
            finite &= self._differing(reference)
        return int(finite.sum())

    def _differing(
        self,
        other: Values,
        *,
        exact: bool = False,
        factor: float = 1.0,
        within: tuple[float, float] | None = None,
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which numbers differ from those of an answer of the same form."""
        relative, absolute = within or _tolerances(self.form, exact=exact)
        a, b = self._array, other._array
        with np.errstate(invalid="ignore", over="ignore"):
            slack = absolute + relative * np.maximum(np.abs(a), np.abs(b))
            differs: np.ndarray[tuple[int], np.dtype[np.bool_]] = ~(np.abs(a - b) <= slack * factor)
        if differs.any():  # infinities and nan are not close to themselves
            differs &= (a != b) & ~(np.isnan(a) & np.isnan(b))
        return differs

    @functools.cached_property
    def _array(self) -> Numbers:
        """The numbers for NumPy, which compares a few numbers several times as fast as torch."""
        return self.numbers.numpy()


Answer = Values | Raised


@dataclass(frozen=True)
class Sketched:
    """Values known only by their form and the weighted sum of their numbers."""

    form: Form
    total: float

    def same(self, other: Answer, *, exact: bool = False) -> bool:
        """Return whether an answer has this form and, up to rounding, this sum."""
        if not isinstance(other, Values) or other.form != self.form:
            return False
        total, slack = other.sketched(exact=exact) if exact else other.sketch
        return abs(total - self.total) <= slack


@functools.lru_cache(maxsize=512)
def _tolerances(form: Form, *, exact: bool = False) -> tuple[Numbers, Numbers]:
    """Return the relative and the absolute tolerance of each number of a form."""
    by_dtype = ROUNDING if exact else TOLERANCE
    counts: list[int] = []
    found: list[tuple[float, float]] = []
    for _, kind, *shape in form:
        if shape or kind in NUMBERS:
            counts.append(math.prod(shape[0]) if shape else 1)
            exactly = (0.0, 0.0) if shape else by_dtype[torch.float64]
            found.append(by_dtype.get(kind, exactly))
    pairs = np.array(found, dtype=np.float64).reshape(-1, 2)  # (tensors, 2)
    relative, absolute = np.repeat(pairs, np.array(counts, dtype=np.int64), axis=0).T
    return relative, absolute


@functools.lru_cache(maxsize=64)
def _weights(count: int) -> Numbers:
    generator = torch.Generator().manual_seed(count)
    drawn = torch.rand(count, dtype=torch.float64, generator=generator) + 0.5
    return np.asarray(drawn.numpy())


def values_of(result: Any) -> Values:
    """Return the result of a case as an answer."""
    form: list[tuple[Any, ...]] = []
    numbers = [torch.empty(0, dtype=torch.float64)]
    for place, leaf in _leaves(result, ()):
        if isinstance(leaf, Tensor):
            form.append((place, leaf.dtype, tuple(leaf.shape)))
            numbers.append(leaf.detach().reshape(-1).double())
        elif isinstance(leaf, int | float):
            form.append((place, type(leaf).__name__))
            numbers.append(torch.tensor([float(leaf)], dtype=torch.float64))
        else:
            form.append((place, "an object" if isinstance(leaf, Remote) else str(leaf)[:200]))
    if sum(map(len, numbers)) > MAX_NUMBERS:
        form, numbers = [((), "too many numbers")], numbers[:1]
    return Values(tuple(form), torch.cat(numbers))


def _leaves(value: Any, place: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], Any]]:
    """Yield the parts of a nested value, each with its place."""
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], (*place, str(key)))
    elif isinstance(value, list | tuple):
        yield place, f"a {type(value).__name__} of {len(value)}"
        for number, item in enumerate(value):
            yield from _leaves(item, (*place, number))
    else:
        yield place, value


def failure_of(kind: str, message: str, *, by_hand: bool) -> Raised:
    """Return an error as an answer; `by_hand` if the code itself raised or asserted it."""
    if by_hand:
        return Raised(kind, "by hand")
    if kind == "Mismatch":
        return Raised(kind, "")
    found = next((name for name, words in SUBJECTS if re.search(words, message, re.I)), "")
    return Raised("error" if found else kind, found)


def finite_differences(answer: Answer, reference: Answer) -> int:
    """Return how many finite numbers of an answer differ from the reference's."""
    return answer.finite_differences(reference) if isinstance(answer, Values) else 0


def nan_in(answer: Answer, *, gradients: bool = False) -> bool:
    """Return whether an answer holds nan as an output, or as one of the `gradients`."""
    leaves = answer.leaves() if isinstance(answer, Values) else ()
    return any(
        leaf.value is not None and bool(leaf.value.isnan().any())
        for leaf in leaves
        if is_gradient(leaf.place) == gradients
    )
