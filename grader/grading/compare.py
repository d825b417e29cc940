"""Comparing what the student computed with what is expected.

Every comparison raises a `Mismatch` that carries the difference; none returns a bool that could be
dropped. Both sides are plain tensors by the time they come here. Checked in this order: type,
shape, dtype, finiteness, values.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from grader.errors import Mismatch
from grader.report import Difference, Excerpt

TOLERANCE = {  # dtype: (relative, absolute)
    torch.float64: (1e-6, 1e-8),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (3e-2, 1e-2),
}
ROWS, COLUMNS = 6, 6  # the largest window of a tensor that a report shows


def assert_close(
    actual: Any,
    expected: Any,
    what: str = "the output",
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Raise `Mismatch` unless `actual` is `expected`: type, shape, dtype, finiteness, values.

    `what` names the value in the message ("the weights"). The tolerance is that of the dtype
    (float64: 1e-6 relative, 1e-8 absolute) unless given; integers and bools must be equal.
    """
    if not isinstance(expected, Tensor):
        if type(actual) is not type(expected) or not _equal(actual, expected):
            _fail("value", f"{what} is {describe(actual)}, not {expected!r}", expected, actual)
        return
    if not isinstance(actual, Tensor):
        summary = f"{what} is {describe(actual)}, where a tensor is expected"
        _fail("type", summary, expected, actual)
    if actual.shape != expected.shape:
        summary = f"{what} has shape {_shape(actual)}, where {_shape(expected)} is expected"
        _fail("shape", summary, expected, actual)
    if actual.dtype != expected.dtype:
        summary = f"{what} is {_dtype(actual)}, where {_dtype(expected)} is expected"
        _fail("dtype", summary, expected, actual)
    expected, actual = expected.detach(), actual.detach()
    _assert_values(actual, expected, what, rtol, atol)


def _equal(actual: Any, expected: Any) -> bool:
    try:
        return bool(actual == expected)
    except RuntimeError:  # a tensor in a list is neither true nor false
        return False


def _assert_values(
    actual: Tensor, expected: Tensor, what: str, rtol: float | None, atol: float | None
) -> None:
    default_rtol, default_atol = TOLERANCE.get(expected.dtype, (0.0, 0.0))
    rtol = default_rtol if rtol is None else rtol
    atol = default_atol if atol is None else atol
    if torch.allclose(actual, expected, rtol=rtol, atol=atol):
        return
    wrong = ~torch.isclose(actual, expected, rtol=rtol, atol=atol)
    first = tuple(wrong.nonzero()[0].tolist())
    stray = wrong & ~actual.isfinite() if actual.is_floating_point() else wrong & False
    if stray.any():
        first = tuple(stray.nonzero()[0].tolist())
    got, want = _number(actual[first].item()), _number(expected[first].item())
    count, total = int(wrong.sum()), wrong.numel()
    place = f" at {list(first)}" if first else ""
    summary = f"{what} is {got}{place}, where {want} is expected"
    if total > 1:
        summary += f" ({count} of {total} values differ"
        worst = (actual.double() - expected.double())[wrong].abs().max().item()
        if math.isfinite(worst) and actual.dtype != torch.bool:
            summary += f", by up to {_number(worst)}"
        summary += ")"
    parts = excerpt(expected, near=first), excerpt(actual, near=first)
    raise Mismatch(summary, Difference("finite" if stray.any() else "value", summary, *parts))


def expect(condition: object, message: str) -> None:
    """Raise `Mismatch(message)` unless `condition` holds; `message` is what the student reads."""
    if not condition:
        raise Mismatch(message)


def _fail(aspect: Any, summary: str, expected: Any, actual: Any) -> None:
    raise Mismatch(summary, Difference(aspect, summary, excerpt(expected), excerpt(actual)))


def describe(value: Any) -> str:
    """A value in a few words: `None`, `a tuple of 2`, `a number (3.5)`, `an nn.Linear`."""
    if value is None:
        return "None"
    if isinstance(value, Tensor):
        return f"a tensor of shape {_shape(value)}"
    if isinstance(value, bool | int | float):
        return f"a number ({value!r})" if not isinstance(value, bool) else repr(value)
    if isinstance(value, tuple | list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, str):
        return f"a string ({value[:40]!r})"
    return f"an object of type {getattr(value, 'type_name', type(value).__name__)}"


def excerpt(value: Any, near: tuple[int, ...] = ()) -> Excerpt:
    """The part of `value` around the index `near` that a report can show."""
    if not isinstance(value, Tensor):
        return Excerpt(text=describe(value) if not isinstance(value, str) else value[:200])
    value = value.detach()
    at, window = _window(value, near)
    numbers = window.tolist()
    return Excerpt(
        text=_grid(numbers),
        shape=tuple(value.shape),
        dtype=_dtype(value),
        at=at,
        values=_round(numbers),
    )


def _window(value: Tensor, near: tuple[int, ...]) -> tuple[tuple[int, ...], Tensor]:
    """The last two dimensions of `value` at `near`, cut to ROWS × COLUMNS around it."""
    if value.numel() == 0:
        return (), value.new_empty(0)
    index = near if len(near) == value.dim() else (0,) * value.dim()
    lead = index[:-2] if value.dim() > 2 else ()
    at = list(lead)
    window = value[lead] if lead else value
    for axis, limit in zip(range(window.dim()), (ROWS, COLUMNS)[-window.dim() :] or ()):
        size, place = window.shape[axis], index[len(lead) + axis]
        start = max(0, min(place - limit // 2, size - limit))
        window = window.narrow(axis, start, min(limit, size))
        at.append(start)
    return tuple(at), window


def _round(values: Any) -> Any:
    if isinstance(values, list):
        return [_round(value) for value in values]
    if isinstance(values, float):
        return float(f"{values:.6g}") if math.isfinite(values) else str(values)
    return values


def _grid(numbers: Any) -> str:
    """Numbers as aligned rows: what a terminal shows."""
    if not isinstance(numbers, list):
        return _number(numbers)
    rows = numbers if numbers and isinstance(numbers[0], list) else [numbers]
    cells = [[_number(number) for number in row] for row in rows]
    width = max((len(cell) for row in cells for cell in row), default=0)
    return "\n".join("  ".join(cell.rjust(width) for cell in row) for row in cells)


def _number(value: Any) -> str:
    if isinstance(value, bool | int | str):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.4f}"
    return f"{value:.3g}"


def _shape(value: Tensor) -> str:
    return str(tuple(value.shape))


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
