"""The origin of nan in a call: the first function that returns it from arguments without nan.

It looks at the results of torch's functions, without torch's own record, so code can hide from it.
Its report explains an answer; no mark depends on it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from grader.sandbox.worker.torch_modes import ModeOnTop

BEGINS = "begins."  # then the value that begins, why, the function, the file and the line
NAN, INFINITY, ROOT = "nan", "infinity", "root"  # the last: a root of 0, whose slope is infinite
MAX_FILE, MAX_FUNCTION = 200, 60  # characters reported of a name
SOFTMAX = ("softmax", "log_softmax")
DIVISIONS = ("div", "div_", "__rdiv__", "divide", "true_divide", "reciprocal")
PRODUCTS = ("mul", "mul_", "multiply")
MATRIX_PRODUCTS = (
    *("matmul", "__rmatmul__", "bmm", "mm", "mv", "einsum", "linear", "addmm"),
    *("baddbmm", "dot", "inner", "tensordot"),
)
SUMS = ("add", "add_", "sub", "sub_", "__rsub__", "subtract")
TOTALS = ("sum", "cumsum", "logsumexp")
MEANS = ("mean", "var", "std", "var_mean", "std_mean")
ROOTS = ("sqrt", "rsqrt", "sqrt_", "rsqrt_")
POWERS = ("pow", "pow_", "__rpow__", "float_power")
LOGARITHMS = ("log", "log2", "log10", "log1p", "log_")
EXPONENTIALS = ("exp", "exp_", "exp2", "expm1", "sinh", "cosh")
NORMS = ("norm", "linalg_norm", "linalg_vector_norm", "cdist")
WRITERS = (
    *("masked_fill", "masked_fill_", "where", "fill_", "full", "full_like", "new_full", "tensor"),
    *("as_tensor", "__setitem__", "masked_scatter", "index_fill", "scatter", "nan_to_num"),
)


class NanWatch:
    """A context manager that notes where nan begins in the code of some files, and infinity.

    `reported` has a name for each: "begins.nan.<why>.<function>.<file>:<line>".
    """

    def __init__(self, files: Collection[str]) -> None:
        self._mode = _Beginnings(files)
        self._on_top: ModeOnTop | None = None

    @property
    def reported(self) -> dict[str, int]:
        """The beginnings, as names of counts."""
        return {f"{BEGINS}{what}.{told}": 1 for what, told in self._mode.found.items()}

    def __enter__(self) -> NanWatch:
        self._on_top = ModeOnTop(self._mode)
        self._on_top.start()
        return self

    def settle(self, *, draws: bool = False) -> None:
        """Stop looking: all following calls are the grader's own."""
        on_top, self._on_top = self._on_top, None
        if on_top is not None:
            on_top.stop()

    def __exit__(self, *exc: Any) -> None:
        self.settle()


class _Beginnings(TorchFunctionMode):
    """Looks at the arguments and results of each function."""

    def __init__(self, files: Collection[str]) -> None:
        super().__init__()
        self._files = files
        self.found: dict[str, str] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        given = [*_numbers((args, kwargs or {}))]
        had_nan, infinities = any(map(_has_nan, given)), _infinities(given)
        had_zero = any(map(_has_zero, given))
        name = str(getattr(func, "__name__", ""))
        why = ""
        with contextlib.suppress(Exception):  # raised by tensors without numbers
            why = _why_nan(name, args, kwargs or {}) if not had_nan else ""
        result = func(*args, **(kwargs or {}))
        made = [*_numbers((result, args[:1] if name in WRITERS else ()))]
        if not had_nan and any(map(_has_nan, made)):
            self._note(NAN, why or "other", name)
        elif name not in WRITERS and _infinities(made) - infinities:
            why = next((why for names, why in WHY_INFINITE if name in names), "other")
            if why != "other" or not infinities:  # because -inf may become inf
                self._note(INFINITY, why, name)
        elif had_zero and name in (*ROOTS, *NORMS, *POWERS):
            self._note(ROOT, "zero", name)
        return result

    def _note(self, what: str, why: str, name: str) -> None:
        """Note the place of a beginning, if it is the first one."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename not in self._files:
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None and what not in self.found:
            file = frame.f_code.co_filename[-MAX_FILE:]
            self.found[what] = f"{why}.{name[:MAX_FUNCTION]}.{file}:{frame.f_lineno}"


def _why_nan(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Return, in a word, why a function makes nan of these arguments without nan."""
    first = next(_numbers(args), None)
    if name in SOFTMAX:
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        row = torch.amax(first, dim) if isinstance(first, Tensor) else torch.zeros(1)
        return "all_hidden" if bool((row == -torch.inf).any()) else "infinity_less_infinity"
    if name in DIVISIONS:
        return "infinity_by_infinity" if _infinities(_numbers(args)) else "zero_by_zero"
    if name in LOGARITHMS:
        return "negative_logarithm"
    if name in (*ROOTS, *POWERS):
        return "negative_root"
    if name in MEANS:
        is_empty = first is not None and not first.numel()
        return "mean_of_nothing" if is_empty else "variance_of_one"
    for names, why in WHY_NAN:
        if name in names:
            return why
    return ""


WHY_NAN = (
    (PRODUCTS, "zero_times_infinity"),
    (MATRIX_PRODUCTS, "product_of_infinity"),
    (SUMS, "infinity_less_infinity"),
    (TOTALS, "infinity_less_infinity"),
    (WRITERS, "written"),
)
WHY_INFINITE = (
    (EXPONENTIALS, "exponential"),
    (DIVISIONS, "by_zero"),
    (ROOTS, "by_zero"),
    (LOGARITHMS, "logarithm_of_zero"),
)


def _numbers(value: Any, depth: int = 3) -> Iterator[Tensor]:
    """Yield the floating-point tensors in nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, list | tuple | dict) and depth:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _numbers(each, depth - 1)


def _has_nan(value: Tensor) -> bool:
    return bool(value.isnan().any())


def _infinities(values: Iterable[Tensor]) -> set[float]:
    """Return which of inf and -inf some tensors hold."""
    kinds, found = (torch.inf, -torch.inf), [*values]
    return {kind for kind in kinds if any(bool((value == kind).any()) for value in found)}


def _has_zero(value: Tensor) -> bool:
    return bool((value == 0).any())
