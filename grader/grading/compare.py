"""Comparison of a value that the student's code computed with the expected one.

Every comparison raises a `Mismatch`; none returns a bool that a suite could forget to check.
"""

from __future__ import annotations

import math
import re
from types import NoneType
from typing import Any

import torch
from torch import Tensor

from grader.errors import Mismatch
from grader.grading.words import OUTPUT
from grader.report import Difference, Excerpt, printable
from grader.sandbox.host.proxies import ARRAY, Remote, type_name

FORGOTTEN = "is a `return` missing?"  # added if the code returns None
TOLERANCE = {  # dtype: (relative, absolute)
    torch.float64: (1e-6, 1e-5),  # code may compute in float32 and convert back
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (3e-2, 1e-2),
}
DIGITS, MAX_DIGITS = 4, 16  # after the point; more if two numbers would look the same
AFTER_THE_NOUN = re.compile(
    r" (?:of|for|in|with|without|at|after|from|to|on|that|when|and|as)\b|,| \("
)
MAX_PLAIN, MAX_PLAIN_TEXT = 30, 90  # entries and characters of a value shown in a sentence
ROWS, COLUMNS = 6, 6  # the size of the part of a tensor in a report


def assert_close(
    actual: Any,
    expected: Any,
    what: str = "the output",
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Raise `Mismatch` unless `actual` equals `expected` within the tolerance.

    Type, shape, dtype, finiteness and values are checked in this order. `what` names the value in
    the message ("the weights"). `rtol` and `atol` replace the tolerance of the dtype (float64:
    1e-6 relative, 1e-5 absolute); integers and bools must be equal.

    Example::

        def test_formula(student, rng):
            \"\"\"The output matches the formula.\"\"\"
            scores = rng.randn(2, 3)  # (n_queries, n_keys)
            expected = torch.softmax(scores / 0.5, dim=-1)  # (n_queries, n_keys)
            assert_close(student.tempered_softmax(scores, 0.5), expected, "the weights")
    """
    if not isinstance(expected, Tensor):
        if type(actual) is not type(expected) or not _equal(actual, expected):
            _fail("value", f"{being(what)} {describe(actual)}, not {expected!r}", expected, actual)
        return
    if not isinstance(actual, Tensor):
        why = f": {FORGOTTEN}" if actual is None and what == OUTPUT else ""
        summary = f"{being(what)} {describe(actual)}, where a tensor is expected{why}"
        _fail("type", summary, expected, actual)
    if actual.shape != expected.shape:
        summary = f"{_has(what)} shape {_shape(actual)}, where {_shape(expected)} is expected"
        _fail("shape", summary, expected, actual)
    if actual.dtype != expected.dtype:
        summary = f"{being(what)} {_dtype(actual)}, where {_dtype(expected)} is expected"
        _fail("dtype", summary, expected, actual)
    _assert_values(actual.detach(), expected.detach(), what, rtol, atol)


def assert_same(
    actual: Any, other: Any, what: str = "the output", *, shape: tuple[int, ...] = ()
) -> None:
    """Raise `Mismatch` unless two answers of the student agree within the tolerance.

    Neither is known to be right, so both must have the requested form: floating-point tensors of
    `shape` (by default, that of `other`), with finite values.

    Example::

        def test_rows_are_separate(student, rng):
            \"\"\"A row's weights do not depend on other rows.\"\"\"
            scores = rng.randn(2, 3)  # (n_queries, n_keys)
            weights = student.tempered_softmax(scores, 0.5)  # (n_queries, n_keys)
            alone = student.tempered_softmax(scores[:1], 0.5)  # (1, n_keys)
            assert_same(alone, weights[:1], "the weights", shape=(1, 3))
    """
    if isinstance(other, Tensor):
        shape = shape or tuple(other.shape)
    for answer in (other, actual):
        if not isinstance(answer, Tensor):
            why = f": {FORGOTTEN}" if answer is None and what == OUTPUT else ""
            summary = f"{being(what)} {describe(answer)}, where a tensor is expected{why}"
            _fail("type", summary, torch.zeros(shape), answer)
        if tuple(answer.shape) != shape:
            summary = f"{_has(what)} shape {_shape(answer)}, where {shape} is expected"
            _fail("shape", summary, torch.zeros(shape), answer)
        if not answer.is_floating_point():
            summary = f"{being(what)} {_dtype(answer)}, where a floating-point type is expected"
            _fail("dtype", summary, torch.zeros(shape), answer)
        expect(answer.isfinite().all(), f"{being(what)} not finite")
    assert_close(actual, other, what)


def being(what: str) -> str:
    """Return "the output is" or "the weights are"."""
    return f"{what} {'are' if _is_plural(what) else 'is'}"


def _has(what: str) -> str:
    return f"{what} {'have' if _is_plural(what) else 'has'}"


def _is_plural(what: str) -> bool:
    """Return whether a text such as "the weights for two heads" is plural."""
    head = AFTER_THE_NOUN.split(what)[0]
    return head.startswith("the ") and re.search(r"[^asiu]s$", head) is not None


def _equal(actual: Any, expected: Any) -> bool:
    try:
        return bool(actual == expected)
    except RuntimeError:  # a tensor in a list has no truth value
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
    if (wrong & expected.isnan()).any():  # no right answer is nan
        says = f"{being(what)} compared with another answer of your code, which is nan"
        _fail("finite", says, expected, actual)
    non_finite = wrong & ~actual.isfinite()
    is_finite = not non_finite.any()
    first = tuple((wrong if is_finite else non_finite).nonzero()[0].tolist())
    pair = actual[first].item(), expected[first].item()
    got, want = (in_digits(value, digits_apart([pair])) for value in pair)
    count, total = int(wrong.sum()), wrong.numel()
    place = f" at {list(first)}" if first else ""
    summary = f"{being(what)} {got}{place}, where {want} is expected"
    if total > 1:
        summary += f" ({count} of {total} values differ"
        worst = (actual.double() - expected.double())[wrong].abs().max().item()
        if math.isfinite(worst) and actual.dtype != torch.bool:
            summary += f", by up to {in_digits(worst)}"
        summary += ")"
    _fail("value" if is_finite else "finite", summary, expected, actual, near=first)


def expect(condition: object, message: str) -> None:
    """Raise `Mismatch(message)` unless `condition` holds; the student reads `message`.

    Example::

        def test_weights_sum_to_one(student, rng):
            \"\"\"Every row of weights sums to 1.\"\"\"
            weights = student.tempered_softmax(rng.randn(2, 3), 0.5)  # (n_queries, n_keys)
            expect((weights.sum(-1) - 1).abs().max() < 1e-9, "a row does not sum to 1")
    """
    if not condition:
        raise Mismatch(message)


def in_float64(output: Any) -> Tensor:
    """Return an output in float64, because another check asks for its dtype.

    Example::

        def test_centers(student, rng):
            \"\"\"The mean is taken off.\"\"\"
            x = rng.randn(2, 5)  # (batch, n_tokens)
            expected = x - x.mean(-1, keepdim=True)  # (batch, n_tokens)
            assert_close(in_float64(student.center(x)), expected)
    """
    expect(isinstance(output, Tensor), f"the output is {describe(output)}, not a tensor")
    return output.double()  # type: ignore[no-any-return]


def _fail(
    aspect: Any, summary: str, expected: Any, actual: Any, near: tuple[int, ...] = ()
) -> None:
    digits = _digits_of(expected, actual, near)
    parts = excerpt(expected, near, digits), excerpt(actual, near, digits)
    raise Mismatch(summary, Difference(aspect, summary, *parts))


def describe(value: Any) -> str:
    """Return `value` in a few words: `None`, `a tuple of 2`, `an object of type Linear`."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, Tensor):
        return f"a tensor of shape {_shape(value)}"
    if isinstance(value, int | float):
        return f"a number ({value!r})"
    if isinstance(value, tuple | list | dict):
        size = f"a {type(value).__name__} of {len(value)}"
        return f"{size}: {_shortened(repr(value))}" if _is_plain(value) else size
    if isinstance(value, str):
        return f"a string ({value[:40]!r})"
    if isinstance(value, bytes):
        return f"bytes ({value[:40]!r})"
    name = type_name(value) if isinstance(value, Remote) else type(value).__name__
    if name == ARRAY:
        return "a NumPy array"
    return f"an object of type {name}"


def _is_plain(value: Any, depth: int = 3) -> bool:
    """Return whether a value holds nothing but a few short values of Python."""
    if isinstance(value, str | bytes | tuple | list | dict) and len(value) > MAX_PLAIN:
        return False
    if type(value) in (tuple, list):
        return depth > 0 and all(_is_plain(each, depth - 1) for each in value)
    return type(value) in (str, bytes, bool, float, NoneType) or (
        type(value) is int and value.bit_length() <= 64
    )


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_PLAIN_TEXT else f"{text[: MAX_PLAIN_TEXT - 2]} …"


def _digits_of(expected: Any, actual: Any, near: tuple[int, ...]) -> int:
    """Return the digits that show the difference at `near`, the first place that differs."""
    if not (isinstance(expected, Tensor) and isinstance(actual, Tensor)):
        return DIGITS
    if expected.shape != actual.shape or len(near) != expected.dim() or not expected.numel():
        return DIGITS
    return digits_apart([(expected[near].item(), actual[near].item())])


def digits_apart(pairs: list[tuple[Any, Any]]) -> int:
    """Return the number of digits that shows a difference in each pair of numbers."""
    return next(
        (
            digits
            for digits in range(DIGITS, MAX_DIGITS)
            if all(a == b or in_digits(a, digits) != in_digits(b, digits) for a, b in pairs)
        ),
        MAX_DIGITS,
    )


def excerpt(value: Any, near: tuple[int, ...] = (), digits: int = DIGITS) -> Excerpt:
    """Return the part of `value` around the index `near` that a report shows."""
    if not isinstance(value, Tensor):
        return Excerpt(text=describe(value) if not isinstance(value, str) else value[:200])
    at, window = _window(value.detach(), near)
    numbers = window.tolist()
    values = printable(numbers, f".{max(6, digits + 2)}g")
    return Excerpt(_grid(numbers, digits), tuple(value.shape), _dtype(value), at, values)


def _window(value: Tensor, near: tuple[int, ...]) -> tuple[tuple[int, ...], Tensor]:
    """Return the start and the values of a window around `near`, at most ROWS × COLUMNS."""
    if value.numel() == 0:
        return (), value.new_empty(0)
    index = near if len(near) == value.dim() else (0,) * value.dim()
    lead = index[:-2] if value.dim() > 2 else ()
    at = list(lead)
    window = value[lead] if lead else value
    for axis, limit in zip(range(window.dim()), (ROWS, COLUMNS)[-window.dim() :]):
        size, place = window.shape[axis], index[len(lead) + axis]
        start = max(0, min(place - limit // 2, size - limit))
        window = window.narrow(axis, start, min(limit, size))
        at.append(start)
    return tuple(at), window


def _grid(numbers: Any, digits: int) -> str:
    if not isinstance(numbers, list):
        return in_digits(numbers, digits)
    rows = numbers if numbers and isinstance(numbers[0], list) else [numbers]
    cells = [[in_digits(number, digits) for number in row] for row in rows]
    width = max((len(cell) for row in cells for cell in row), default=0)
    return "\n".join("  ".join(cell.rjust(width) for cell in row) for row in cells)


def in_digits(value: Any, digits: int = DIGITS) -> str:
    """Return a number with `digits` digits after the point; if very large or small, in all."""
    if isinstance(value, int | str) or not math.isfinite(value):
        return str(value)
    is_usual = value == 0 or 1e-3 <= abs(value) < 1e4
    return f"{value:.{digits}f}" if is_usual else f"{value:.{digits - 1}g}"


def _shape(value: Tensor) -> str:
    return str(tuple(value.shape))


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
