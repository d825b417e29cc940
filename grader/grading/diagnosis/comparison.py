"""Comparison of two solutions' answers to one request, in the form that crosses the boundary.

What the contract of an exercise leaves open does not count.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import attrgetter, itemgetter

import torch
from torch import Tensor

from grader.grading.compare import TOLERANCE
from grader.sandbox import wire

SEQUENCES = wire.WireList | wire.WireTuple
Values = Sequence[wire.Value]
Tolerance = Mapping[torch.dtype, tuple[float, float]]
form_of = attrgetter("dtype", "shape", "requires_grad")  # of a tensor: all but its numbers
ROUNDING: Tolerance = {  # dtype: (relative, absolute), for operations in another order
    **TOLERANCE,
    torch.float64: (1e-11, 1e-14),
    torch.float32: (3e-6, 1e-7),
}


def same_answer(
    first: wire.Answer | None,
    second: wire.Answer | None,
    reference: wire.Answer | None = None,
    *,
    exact: bool = False,
) -> bool:
    """Return whether two answers to one request are the same within the contract.

    Values are compared within the tolerance of their dtype, or with `exact` up to rounding.
    Errors are compared by type, and by message unless the code raised one of them itself. Names of
    types and numbers of operations do not count. Of buffers, only one thing counts: whether all
    shapes among the buffers of `reference`, the reference's answer, are present.
    """
    tolerance = ROUNDING if exact else TOLERANCE
    if isinstance(first, wire.Failure) and isinstance(second, wire.Failure):
        return first.kind == second.kind and (
            first.message == second.message or _is_explicit(first) or _is_explicit(second)
        )
    if isinstance(first, wire.Reply) and isinstance(second, wire.Reply):
        ours, theirs = _parts(first), _parts(second)
        expected = _buffer_shapes(reference) if isinstance(reference, wire.Reply) else set()
        return _all_same(ours, theirs, tolerance) and (
            (expected <= _buffer_shapes(first)) == (expected <= _buffer_shapes(second))
        )
    return first is None and second is None


def differing_mask(first_answer: wire.Answer | None, second_answer: wire.Answer | None) -> Tensor:
    """Return where two answers' tensors differ; one False if their dtypes or shapes differ."""
    first, second = (getattr(reply, "value", None) for reply in (first_answer, second_answer))
    if (
        isinstance(first, wire.WireTensor)
        and isinstance(second, wire.WireTensor)
        and (first.dtype, first.shape) == (second.dtype, second.shape)
    ):
        with suppress(wire.Malformed):
            return ~torch.isclose(*_unpacked(first, second, TOLERANCE), equal_nan=True)
    return torch.tensor(False)


def has_no_finite_number(answer: wire.Answer | None) -> bool:
    """Return whether an answer is a tensor without a finite number, which many mistakes give."""
    value = getattr(answer, "value", None)
    if isinstance(value, wire.WireTensor):
        with suppress(wire.Malformed):
            return not bool(wire.unpack_tensor(value).isfinite().any())
    return False


def operations_grow(answers: Sequence[wire.Answer | None]) -> bool:
    """Return whether the last watched call took more operations than the first, as a loop does."""
    counts = [
        sum(n for name, n in answer.operations.items() if name.startswith("torch."))
        for answer in answers
        if isinstance(answer, wire.Reply) and answer.operations
    ]
    return bool(counts) and counts[-1] > counts[0]


def _is_explicit(failure: wire.Failure) -> bool:
    """Return whether a `raise` or `assert` of the solution itself made the error."""
    line = failure.frames[-1].source.strip() if failure.frames else ""
    return line.startswith(("raise", "assert"))


def _all_same(first: Values, second: Values, tolerance: Tolerance) -> bool:
    return len(first) == len(second) and all(
        _same_value(a, b, tolerance) for a, b in zip(first, second)
    )


def _same_value(first: wire.Value, second: wire.Value, tolerance: Tolerance) -> bool:
    if type(first) is not type(second):
        return False
    if isinstance(first, wire.WireTensor) and isinstance(second, wire.WireTensor):
        return _same_tensor(first, second, tolerance)
    if isinstance(first, SEQUENCES) and isinstance(second, SEQUENCES):
        return _all_same(first.items, second.items, tolerance)
    if isinstance(first, wire.WireDict) and isinstance(second, wire.WireDict):
        ours, theirs = ([*itertools.chain(*pairs)] for pairs in (first.pairs, second.pairs))
        return _all_same(ours, theirs, tolerance)
    if isinstance(first, wire.Handle) and isinstance(second, wire.Handle):
        return first.parameters == second.parameters
    return first == second


def _same_tensor(first: wire.WireTensor, second: wire.WireTensor, tolerance: Tolerance) -> bool:
    if form_of(first) != form_of(second):
        return False
    with suppress(wire.Malformed):
        return first.data == second.data or torch.allclose(
            *_unpacked(first, second, tolerance), equal_nan=True
        )
    return False


def _unpacked(
    first: wire.WireTensor, second: wire.WireTensor, tolerance: Tolerance
) -> tuple[Tensor, Tensor, float, float]:
    """Return two tensors of one dtype, and its relative and absolute tolerance."""
    ours, theirs = wire.unpack_tensor(first), wire.unpack_tensor(second)
    return ours, theirs, *tolerance.get(ours.dtype, (0.0, 0.0))


def _parts(reply: wire.Reply) -> list[wire.Value]:
    """Return what of a reply counts, in an order that does not depend on the parameters' order."""
    changed = [(each.place, each.tensor) for each in reply.changed]
    entries = [(each.name, each.tensor, each.grad) for each in reply.entries if each.is_parameter]
    parts = *changed, *sorted(entries, key=itemgetter(0))
    return [reply.value, wire.WireList(list(reply.grads)), *itertools.chain(*parts)]


def _buffer_shapes(reply: wire.Reply) -> set[tuple[int, ...]]:
    """Return the shapes of the buffers without leading axes of size 1."""
    shapes = [entry.tensor.shape for entry in reply.entries if not entry.is_parameter]
    return {tuple(itertools.dropwhile(lambda size: size == 1, shape)) for shape in shapes}
