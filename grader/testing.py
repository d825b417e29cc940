"""The vocabulary of suites: the functions that tests of exercises use.

A suite is a pytest file with the fixtures `student`, `reference` and `rng`. The functions accept
both the student's code in its own process and plain modules. A failed check raises `CheckFailure`,
so no verdict can be dropped. Each example is a test of a hidden suite and runs as it is.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from grader.errors import Mismatch, NothingRaised
from grader.grading.compare import assert_close, assert_same, describe, expect, in_float64
from grader.grading.diagnosis.answers import REFUSALS
from grader.grading.moves import assert_moves
from grader.grading.parameters import give_parameters, parameter_shapes
from grader.grading.rng import Rng
from grader.grading.slopes import assert_slopes
from grader.grading.training import assert_reaches, trained
from grader.grading.watched import (
    assert_linear_memory,
    assert_memory,
    assert_vectorised,
    assert_written_by_hand,
    watched,
)
from grader.sandbox import wire
from grader.sandbox.host.proxies import Student, code_of

__all__ = [
    "Rng",
    "assert_close",
    "assert_drawn_anew",
    "assert_dropped",
    "assert_dtype",
    "assert_linear_memory",
    "assert_memory",
    "assert_moves",
    "assert_reaches",
    "assert_refused",
    "assert_same",
    "assert_slopes",
    "assert_takes_views",
    "assert_unchanged",
    "assert_vectorised",
    "assert_weights_dropped",
    "assert_written_by_hand",
    "expect",
    "in_float64",
    "load_parameters",
    "manual_seed",
    "output_of",
    "parameter_shapes",
    "raises",
    "sharing",
    "trained",
    "twins",
    "watched",
]

SENTENCES = 300  # draws in which each weight is dropped on its own


def raises(student: Student, *kinds: str) -> AbstractContextManager[None]:
    """Raise `Mismatch` unless the student's code raises an exception named in `kinds` in the block.

    A subclass counts; a stub's `NotImplementedError` and a file that does not load do not.

    Example::

        def test_refuses_zero(student):
            \"\"\"A temperature of zero is refused.\"\"\"
            with raises(student, "ValueError"):
                student.tempered_softmax(torch.ones(2, 3), 0.0)
    """
    return code_of(student).raises(*kinds)


def assert_refused(student: Student, call: Callable[[], Any], shown: str, *kinds: str) -> None:
    """Raise `Mismatch` unless a call, shown as `shown` in the message, raises one of `kinds`.

    By default, these are all exceptions that refuse a call: `ValueError`, `AssertionError`,
    `RuntimeError` and `IndexError`.

    Example::

        def test_zero(student):
            \"\"\"A temperature of zero is refused.\"\"\"
            call = lambda: student.tempered_softmax(torch.ones(2, 3), 0.0)
            assert_refused(student, call, "tempered_softmax(scores, 0.0)")
    """
    kinds = kinds or REFUSALS
    try:
        with raises(student, *kinds):
            call()
    except NothingRaised:
        raise Mismatch(f"{shown} raises nothing, where {kinds[0]} is expected") from None


def manual_seed(student: Student, seed: int, *, only_torch: bool = False) -> None:
    """Seed torch's generator where the student's code runs, and Python's and NumPy's.

    With `only_torch`, the other generators go on, so code that draws from them is not repeatable.

    Example::

        def test_dropout_repeats(student):
            \"\"\"The same seed drops the same weights.\"\"\"
            manual_seed(student, 7, only_torch=True)
            first = student.drop(torch.ones(2, 3, 4), 0.5)
            manual_seed(student, 7, only_torch=True)
            again = student.drop(torch.ones(2, 3, 4), 0.5)
            assert_same(again, first, "the weights that are left", shape=(2, 3, 4))
    """
    code_of(student).manual_seed(seed, only_torch=only_torch)


def sharing(student: Student, *written: Tensor) -> AbstractContextManager[None]:
    """Let the student's code write into the tensors `written` in the block.

    The code always gets copies. What it wrote into the copy of one of `written` is written into
    that tensor too; a call that wrote into any other argument raises `Mismatch`.

    Example::

        def test_writes_in_place(student):
            \"\"\"The argument itself is filled with zeros.\"\"\"
            x = torch.ones(2, 3)
            with sharing(student, x):
                student.clear_(x)
            assert_close(x, torch.zeros(2, 3), "the argument")
    """
    return code_of(student).sharing(*written)


def output_of(module: Any, *args: Any, **kwargs: Any) -> Any:
    """Call without gradients and return the result.

    Example::

        def test_keeps_the_shape(student, rng):
            \"\"\"The output has the shape of the input.\"\"\"
            x = rng.randn(2, 5, 7)  # (batch, n_tokens, d_model)
            expect(output_of(student.Norm(7).double(), x).shape == x.shape, "the shape changes")
    """
    with torch.no_grad():
        return module(*args, **kwargs)


def load_parameters(
    module: Any, state: Mapping[str, Tensor], *, dtype: torch.dtype = torch.float64
) -> Any:
    """Return a module in `dtype` and evaluation mode, with those parameters of `state` that it has.

    A parameter of another shape is filled with the numbers in their order, as far as it has room;
    if the state has too few, it keeps its values. Other checks ask for names and shapes. A buffer
    counts as a parameter here.

    Example::

        def test_scales(student):
            \"\"\"The output is scaled by gamma.\"\"\"
            norm = load_parameters(student.Norm(2), {"gamma": torch.tensor([3.0, 3.0])})
            output = norm(torch.tensor([1.0, -1.0], dtype=torch.float64))
            assert_close(output, torch.tensor([3.0, -3.0], dtype=torch.float64))
    """
    give_parameters(module, state, dtype)
    return module


def twins(
    student_class: Any,
    reference_class: Any,
    *args: Any,
    rng: Rng,
    dtype: torch.dtype = torch.float64,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """Return the student's module and the reference's with the same random parameters.

    Both are in evaluation mode and have `dtype`. No parameter stays at one or zero, where mistakes
    would hide.

    Example::

        def test_normalises(student, reference, rng):
            \"\"\"The output is that of the formula.\"\"\"
            theirs, ours = twins(student.Norm, reference.Norm, 7, rng=rng)
            x = rng.randn(2, 5, 7)  # (batch, n_tokens, d_model)
            assert_close(theirs(x), ours(x))
    """
    theirs = student_class(*args, **kwargs)
    ours = reference_class(*args, **kwargs)
    found, wanted = parameter_shapes(theirs), parameter_shapes(ours)
    if found != wanted:
        raise Mismatch(f"the parameters are {_listed(found)}, where {_listed(wanted)} are expected")
    count = sum(math.prod(shape) for shape in wanted.values())
    values = (rng.randn(count) * 0.5 + 0.25).to(dtype)
    parts = values.split([math.prod(wanted[name]) for name in sorted(wanted)])  # type: ignore[no-untyped-call]
    for module in (theirs, ours):
        give_parameters(module, dict(zip(sorted(wanted), parts)), dtype)
    return theirs, ours


def _listed(parameters: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in parameters.items()) or "none"


def assert_unchanged(
    student: Student, call: Callable[..., Any], *inputs: Any, names: Sequence[str]
) -> Any:
    """Return the result of a call; raise `Mismatch` if it writes into one of `inputs`.

    They may be tensors, and lists or dicts without tensors.

    Example::

        def test_leaves_x_alone(student, rng):
            \"\"\"The argument is not written into.\"\"\"
            assert_unchanged(student, student.center, rng.randn(2, 5), names=["x"])
    """
    given = [_copy(value) for value in inputs]
    with sharing(student, *(value for value in given if isinstance(value, Tensor))):
        result = call(*given)
    for name, old, new in zip(names, inputs, given):
        if isinstance(old, Tensor):
            same = wire.pack_tensor(old).data == wire.pack_tensor(new).data
            expect(same, f"your code wrote into its argument {name}; work on a new tensor")
        elif isinstance(old, list | dict):  # a student's module in this very process
            expect(repr(old) == repr(new), f"your code changed its argument {name}; work on a copy")
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return copy.deepcopy(value) if isinstance(value, list | dict) else value


def assert_takes_views(student: Student, module: Any, x: Tensor) -> None:
    """Raise `Mismatch` if a module writes into `x`, or gives other outputs for views of it.

    `x` has three axes. The module is called in training mode with gradients, and in evaluation mode
    without.

    Example::

        def test_argument(student, rng):
            \"\"\"x may be a transposed view, and is not modified.\"\"\"
            assert_takes_views(student, student.Norm(5).to(torch.float64), rng.randn(2, 3, 5))
    """
    assert_unchanged(student, module.train(), x, names=("x",))
    module.eval()

    def output(value: Tensor) -> Any:
        return assert_unchanged(student, lambda x: output_of(module, x), value, names=("x",))

    plain = output(x)
    for first, second in ((1, 2), (0, 1)):
        view = x.transpose(first, second).contiguous().transpose(first, second)
        assert_same(output(view), plain, "the output for a transposed view")


def assert_dtype(output: Any, dtype: torch.dtype, shown: str) -> None:
    """Raise `Mismatch` unless the output of a call, which the message shows, has a dtype.

    Example::

        def test_dtype(student, rng):
            \"\"\"The output has the dtype of the input.\"\"\"
            x = rng.randn(2, 5, dtype=torch.bfloat16)  # (batch, n_tokens)
            assert_dtype(student.center(x), torch.bfloat16, "the output for an x in bfloat16")
    """
    expect(isinstance(output, Tensor), f"{shown} is {describe(output)}, not a tensor")
    names = [str(each).removeprefix("torch.") for each in (output.dtype, dtype)]
    expect(output.dtype == dtype, f"{shown} is {names[0]}, where {names[1]} is expected")


def assert_dropped(dropped: Tensor, rate: float, what: str) -> None:
    """Raise `Mismatch` unless values are dropped at the rate, each on its own.

    `dropped` marks the dropped values, (draws, ...), with at least 200 draws. The share may differ
    from the rate by 0.06, or by five standard deviations if the values are few: right code fails
    once in a million runs. A rate such as 0.39 also finds code that cuts it to tenths.

    Example::

        def test_drops(student):
            \"\"\"Each weight is dropped on its own.\"\"\"
            dropped = student.drop(torch.ones(200, 3), 0.3) == 0  # (draws, n_keys)
            assert_dropped(dropped, 0.3, "weights")
    """
    values = dropped.flatten(1).double()
    shares = values.mean(0)
    share = shares.mean().item()
    says = f"{share:.0%} of the {what} are dropped, where about {rate:.0%} are expected"
    deviation = math.sqrt(rate * (1 - rate) / values.numel())
    expect(abs(share - rate) < max(0.06, 5 * deviation), says)
    uneven = f"some {what} are dropped more often than others, or in all sentences at once"
    expect((shares - rate).abs().max() < 0.2, uneven)
    together = torch.corrcoef(values.T).view(shares.numel(), -1).fill_diagonal_(0).abs().max()
    expect(together < 0.5, f"some {what} of a sentence are always dropped together")
    spread = math.sqrt(values.shape[1] * rate * (1 - rate))  # of how many are dropped at once
    as_many = (
        f"each draw drops nearly the same number of {what}, which are to be dropped one by one"
    )
    expect(values.sum(1).std() > spread / 2, as_many)


def assert_weights_dropped(
    attention: Any, rate: float, queries: Tensor, keys: Tensor, values: Tensor
) -> None:
    """Raise `Mismatch` unless a module drops its weights at the rate, in training alone.

    The arguments are of one sentence, (1, n_queries, d_query) and so on, with no more keys than
    `d_value`: then the weights can be computed from an output. `attention_weights` of the module
    must hold the weights before any is dropped, in training as well.

    Example::

        def test_drops_weights(student, rng):
            \"\"\"Weights are dropped in training.\"\"\"
            queries, keys = rng.randn(1, 2, 4), rng.randn(1, 3, 4)  # (1, n_queries or n_keys, d)
            values = rng.randn(1, 3, 5)  # (1, n_keys, d_value)
            assert_weights_dropped(student.Attention(0.4), 0.4, queries, keys, values)
    """
    inputs = [tensor.repeat(SENTENCES, 1, 1) for tensor in (queries, keys, values)]
    inverse = torch.linalg.pinv(values[0])  # turns an output into the weights that made it
    weights = output_of(attention.eval(), *inputs) @ inverse
    seen = output_of(attention.train(), *inputs) @ inverse
    assert_close(attention.attention_weights, weights, "attention_weights in training")
    dropped = seen.abs() < weights / 2
    kept = (weights / (1 - rate)).masked_fill(dropped, 0.0)
    assert_close(seen, kept, "the weights in training (computed from the output)")
    assert_dropped(dropped, rate, "weights")


def assert_drawn_anew(in_training: Any, *inputs: Tensor, what: str = "weights") -> None:
    """Raise `Mismatch` if a module in training, or a function that calls it, drops the same twice.

    Example::

        def test_draws_anew(student, rng):
            \"\"\"Each call drops others.\"\"\"
            queries, keys, values = (rng.randn(2, 30, 5) for _ in range(3))
            assert_drawn_anew(student.Attention(0.5).train(), queries, keys, values)
    """
    one, other = (in_float64(output_of(in_training, *inputs)) for _ in range(2))
    expect((one != other).any(), f"each call drops the same {what}")
