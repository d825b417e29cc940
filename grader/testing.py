"""The vocabulary of suites: what a test of an exercise says, beside the fixtures.

The same words work on the student's code across the boundary and on plain modules, so a suite
reads as if everything were local. Every one of them raises a `Mismatch`; none returns a verdict.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from grader.grading.compare import assert_close, describe, expect
from grader.errors import CheckFailure, Mismatch, StudentFailure
from grader.sandbox.worker.adopt import adopt

__all__ = [
    "Rng",
    "assert_close",
    "assert_same_gradients",
    "assert_unchanged",
    "assert_vectorised",
    "assert_written_by_hand",
    "expect",
    "output_of",
    "twins",
]


class Rng:
    """Random inputs of one test: drawn from the grading run's seed and the test's name."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed)

    def randn(self, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """Standard normal values of shape `shape`."""
        return torch.randn(*shape, dtype=torch.float64, generator=self.generator).to(dtype)

    def rand(self, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """Uniform values in [0, 1) of shape `shape`."""
        return torch.rand(*shape, dtype=torch.float64, generator=self.generator).to(dtype)

    def randint(self, low: int, high: int, *shape: int) -> Tensor:
        """Integers in [low, high) of shape `shape`, int64."""
        return torch.randint(low, high, shape, generator=self.generator)

    def permutation(self, n: int) -> Tensor:
        """The numbers 0 … n-1 in random order, never in their own."""
        while True:
            order = torch.randperm(n, generator=self.generator)
            if n < 2 or not torch.equal(order, torch.arange(n)):
                return order


def output_of(module: Any, *args: Any, **kwargs: Any) -> Any:
    """Call without gradients: the value alone."""
    with torch.no_grad():
        return module(*args, **kwargs)


def twins(
    student_class: Any,
    reference_class: Any,
    *args: Any,
    rng: Rng,
    dtype: torch.dtype = torch.float64,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """The student's module and the reference's with the same random parameters, in eval mode.

    Every parameter is drawn anew (none stays at one or zero, where mistakes would hide).
    """
    theirs = student_class(*args, **kwargs)
    ours = reference_class(*args, **kwargs)
    found, wanted = _shapes(theirs), _shapes(ours)
    if found != wanted:
        raise Mismatch(f"the parameters are {_listed(found)}, where {_listed(wanted)} are expected")
    count = sum(math.prod(shape) for shape in wanted.values())
    values = (rng.randn(count) * 0.5 + 0.25).to(dtype)
    adopt(ours, values.clone())
    if isinstance(theirs, nn.Module):
        adopt(theirs, values)
    else:
        theirs.adopt(values)
    return theirs, ours


def _shapes(module: Any) -> dict[str, tuple[int, ...]]:
    if isinstance(module, nn.Module):
        return {name: tuple(p.shape) for name, p in module.named_parameters()}
    if not hasattr(module, "parameter_shapes"):
        raise Mismatch(f"the class gives {describe(module)}, where an nn.Module is expected")
    return module.parameter_shapes()  # type: ignore[no-any-return]


def _listed(parameters: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in parameters.items()) or "none"


def assert_same_gradients(
    student: Any,
    reference: Any,
    *inputs: Any,
    names: Sequence[str],
    upstream: Callable[[Tensor], Tensor] | None = None,
) -> None:
    """Output and gradients of both, for the inputs and for parameters where they have some.

    `names` are those of the inputs, as in the exercise. Gradients are those of a weighted sum of
    the output, whose weights differ from place to place (or of `upstream(output)`).
    """
    theirs, ours = _leaves(inputs), _leaves(inputs)
    actual, expected = student(*theirs), reference(*ours)
    assert_close(actual, expected)
    if not actual.requires_grad:
        raise Mismatch("no gradient can flow back from the output: its graph was cut")
    for module in (student, reference):
        if hasattr(module, "zero_grad"):
            module.zero_grad()
    total = upstream or _weighted_sum
    total(actual).backward()  # type: ignore[no-untyped-call]
    total(expected).backward()  # type: ignore[no-untyped-call]
    for name, theirs_, ours_ in zip(names, theirs, ours):
        if isinstance(ours_, Tensor) and ours_.requires_grad:
            _assert_gradient(theirs_.grad, ours_.grad, name)
    if hasattr(reference, "named_parameters"):
        found = dict(student.named_parameters())
        for name, parameter in reference.named_parameters():
            grad = found[name].grad if name in found else None
            _assert_gradient(grad, parameter.grad, name)


def _assert_gradient(actual: Tensor | None, expected: Tensor | None, name: str) -> None:
    if expected is None:
        return
    if actual is None:
        raise Mismatch(f"no gradient reaches {name}")
    assert_close(actual, expected, f"the gradient of {name}")


def _leaves(inputs: Sequence[Any]) -> list[Any]:
    return [
        value.detach().clone().requires_grad_()
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for value in inputs
    ]


def _weighted_sum(output: Tensor) -> Tensor:
    weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64) ** 3 + 0.5
    return (output.double() * weights.view(output.shape)).sum()


def assert_unchanged(
    student: Any, call: Callable[..., Any], *inputs: Any, names: Sequence[str]
) -> Any:
    """Call with `inputs`, none of which may be written into; returns the result."""
    before = [value.clone() if isinstance(value, Tensor) else value for value in inputs]
    with student.sharing():
        result = call(*inputs)
    for name, old, new in zip(names, before, inputs):
        if isinstance(old, Tensor):
            same = old.shape == new.shape and torch.equal(old, new)
            expect(same, f"your code wrote into its argument {name}; work on a new tensor")
    return result


def assert_vectorised(student: Any, small: Callable[[], Any], large: Callable[[], Any]) -> None:
    """The number of tensor operations of `large` may not exceed that of `small`."""
    counts = []
    for call in (small, large):
        with student.watched(kernels=False) as seen:
            call()
        counts.append(seen.operations)
    expect(
        counts[1] <= counts[0],
        f"{counts[0]} tensor operations became {counts[1]} when the sizes grew: "
        "replace the Python loop by operations on whole tensors",
    )


def assert_written_by_hand(student: Any, *calls: Callable[[], Any]) -> None:
    """No forbidden call: neither in the source nor among what `calls` dispatch.

    Whatever else is wrong with the code is left to the other tests.
    """
    found = student.forbidden_in_source()
    if found:
        raise StudentFailure("Forbidden", _forbidden(found[0].function), tuple(found[:1]))
    for call in calls:
        with contextlib.suppress(CheckFailure, Exception), student.watched() as seen:
            call()
        for name in seen.counts:
            plain = "torch." + name.partition(".")[2]
            if any(fnmatchcase(plain, pattern) for pattern in student.forbidden):
                raise StudentFailure("Forbidden", _forbidden(plain))


def _forbidden(name: str) -> str:
    return f"{name} does the work that this exercise asks you to write"
