"""Whether two solutions answered alike, as far as a contract can tell them apart.

The answers of a student's code, the reference's and those of known mistakes are compared here, in
the form in which they crossed the wire.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from grader.grading.compare import TOLERANCE
from grader.sandbox import wire

SEQUENCES = wire.WireList | wire.WireTuple
Tolerance = Mapping[torch.dtype, tuple[float, float]]
ROUNDING: Tolerance = {  # dtype: (relative, absolute), what another order of operations may change
    **TOLERANCE,
    torch.float64: (1e-11, 1e-14),
    torch.float32: (3e-6, 1e-7),
}


def alike(
    first: wire.Answer | None,
    second: wire.Answer | None,
    reference: wire.Answer | None = None,
    *,
    exact: bool = False,
) -> bool:
    """Whether two answers to one request are the same, as far as a contract can tell them apart.

    Values are compared within the tolerance of their dtype, or `exact`ly but for rounding; errors
    by type, and by message where the code did not raise them itself. Names of types and numbers of
    operations do not count. Nor do buffers, but for whether those of the reference's shapes are
    there.
    """
    tolerance = ROUNDING if exact else TOLERANCE
    if isinstance(first, wire.Failure) and isinstance(second, wire.Failure):
        return first.kind == second.kind and (
            first.message == second.message or _by_hand(first) or _by_hand(second)
        )
    if isinstance(first, wire.Reply) and isinstance(second, wire.Reply):
        return (
            _same_value(first.value, second.value, tolerance)
            and _all_same(first.grads, second.grads, tolerance)
            and [c.place for c in first.changed] == [c.place for c in second.changed]
            and _all_same(
                [c.tensor for c in first.changed], [c.tensor for c in second.changed], tolerance
            )
            and _same_entries(first, second, reference, tolerance)
        )
    return first is None and second is None


def spoilt(right: wire.Answer | None, answer: wire.Answer | None) -> Tensor:
    """Where the numbers of one tensor are not those of another of its form; else one False."""
    first, second = (getattr(reply, "value", None) for reply in (right, answer))
    if not isinstance(first, wire.WireTensor) or not isinstance(second, wire.WireTensor):
        return torch.tensor(False)
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return torch.tensor(False)
    try:
        ours, theirs = wire.unpack_tensor(first), wire.unpack_tensor(second)
    except wire.Malformed:
        return torch.tensor(False)
    rtol, atol = TOLERANCE.get(ours.dtype, (0.0, 0.0))
    return ~torch.isclose(ours, theirs, rtol, atol, equal_nan=True)


def is_empty_of_numbers(answer: wire.Answer | None) -> bool:
    """Whether an answer is a tensor without one finite number: many mistakes give such a one."""
    value = getattr(answer, "value", None)
    if not isinstance(value, wire.WireTensor):
        return False
    try:
        return not bool(wire.unpack_tensor(value).isfinite().any())
    except wire.Malformed:
        return False


def grows(answers: Sequence[wire.Answer | None]) -> bool:
    """Whether the calls of one test, watched and ever larger, asked for ever more operations."""
    counts = [
        sum(n for name, n in answer.operations.items() if name.startswith("torch."))
        for answer in answers
        if isinstance(answer, wire.Reply) and answer.operations
    ]
    return bool(counts) and counts[-1] > counts[0]


def _by_hand(failure: wire.Failure) -> bool:
    """Whether the student's or our code raised an error itself, in words of its own."""
    line = failure.frames[-1].source.strip() if failure.frames else ""
    return line.startswith(("raise", "assert"))


def _all_same(
    first: Sequence[wire.Value], second: Sequence[wire.Value], tolerance: Tolerance
) -> bool:
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
        return [key for key, _ in first.pairs] == [key for key, _ in second.pairs] and _all_same(
            [value for _, value in first.pairs], [value for _, value in second.pairs], tolerance
        )
    if isinstance(first, wire.Handle) and isinstance(second, wire.Handle):
        return first.parameters == second.parameters
    return first == second


def _same_tensor(first: wire.WireTensor, second: wire.WireTensor, tolerance: Tolerance) -> bool:
    if (first.dtype, first.shape, first.requires_grad) != (
        second.dtype,
        second.shape,
        second.requires_grad,
    ):
        return False
    if first.data == second.data:
        return True
    try:
        ours, theirs = wire.unpack_tensor(first), wire.unpack_tensor(second)
    except wire.Malformed:
        return False
    rtol, atol = tolerance.get(ours.dtype, (0.0, 0.0))
    return torch.allclose(ours, theirs, rtol, atol, equal_nan=True)


def _same_entries(
    first: wire.Reply, second: wire.Reply, reference: wire.Answer | None, tolerance: Tolerance
) -> bool:
    ours, theirs = _parameters(first), _parameters(second)
    wanted = _buffer_shapes(reference) if isinstance(reference, wire.Reply) else set()
    return (
        ours.keys() == theirs.keys()
        and all(
            _same_value(entry.tensor, theirs[name].tensor, tolerance)
            and _same_value(entry.grad, theirs[name].grad, tolerance)
            for name, entry in ours.items()
        )
        and (wanted <= _buffer_shapes(first)) == (wanted <= _buffer_shapes(second))
    )


def _parameters(reply: wire.Reply) -> dict[str, wire.Entry]:
    return {entry.name: entry for entry in reply.entries if entry.is_parameter}


def _buffer_shapes(reply: wire.Reply) -> set[tuple[int, ...]]:
    """The shapes of the buffers, leading axes of size 1 aside."""
    shapes = set()
    for entry in reply.entries:
        shape = entry.tensor.shape
        while shape and shape[0] == 1:
            shape = shape[1:]
        if not entry.is_parameter:
            shapes.add(tuple(shape))
    return shapes
