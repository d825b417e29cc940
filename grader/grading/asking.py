"""The questions of cases: modules with random parameters, gradients, writes, working calls."""

from __future__ import annotations

import contextlib
import functools
import math
import zlib
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from grader.errors import Mismatch, StudentFailure
from grader.grading.moves import assert_moves
from grader.grading.parameters import (
    call_by_names,
    give_parameters,
    names_asked_for,
    parameter_shapes,
)
from grader.grading.rng import Rng
from grader.grading.told import MANY, known, often
from grader.report import UNWRITTEN
from grader.sandbox.host.proxies import Student, code_of

MAX_PARAMETERS = 1_000_000  # numbers in the parameters of one module
MAX_KEPT = 1_000  # numbers stored for one parameter

ACCEPTED = [True] * MANY  # the result of a case after a call that must be refused


def build(
    made: Callable[..., Any],
    *args: Any,
    rng: Rng,
    dtype: torch.dtype = torch.float64,
    layers: Collection[str] = (),
    **kwargs: Any,
) -> Any:
    """Return the module `made(*args, **kwargs)` with random parameters, in evaluation mode.

    With `layers`, the parameters of other layers keep their values. Layers with similar names are
    found as well: one check asks for names, so the others need not.

    The values of a parameter depend only on its name and the seed, so two modules with the same
    parameters compute the same, in whatever order the parameters were made.

    Example::

        @check.case(about="values")
        def ordinary(student, rng):
            \"\"\"Fewer tokens than the context is long.\"\"\"
            attention = build(student.CausalAttention, 3, 4, 6, 0.0, rng=rng)
            return attention(rng.randn(2, 5, 3))
    """
    module = made(*args, **kwargs)
    shapes = parameter_shapes(module)
    if sum(map(math.prod, shapes.values())) > MAX_PARAMETERS:
        raise Mismatch("the module has far more parameters than the exercise asks for")
    asked = names_asked_for(layers, shapes)
    state = {
        # A student decides the size of parameters, and the stored numbers must stay few.
        name: (_kept_filling if math.prod(shape) <= MAX_KEPT else _filling)(
            asked.get(name, name), shape, rng.seed
        )
        for name, shape in shapes.items()
        if not layers or asked.get(name, name).partition(".")[0] in layers
    }
    give_parameters(module, state, dtype)
    call_by_names(module, asked)
    return module


def _filling(name: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """Return the numbers of a parameter."""
    own = Rng(seed ^ zlib.crc32(name.encode("utf-8", "surrogatepass")))
    return own.randn(*shape) * 0.5 + 0.25


_kept_filling = functools.lru_cache(maxsize=4096)(_filling)  # many programs get the same parameters


def gradients(call: Any, *inputs: Any) -> dict[str, Any]:
    """Return the output of `call(*inputs)` and the gradients of a weighted sum of it.

    The gradients are those of the floating-point inputs, and of the parameters if `call` is a
    module.

    Example::

        @check.case(about="gradient")
        def gradient(student, rng):
            \"\"\"The gradient of X.\"\"\"
            return gradients(student.masked_softmax, rng.randn(2, 3, 5), torch.tensor([2, 4]))
    """
    leaves = [
        value.detach().clone().requires_grad_()
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for value in inputs
    ]
    output = call(*leaves)
    if not isinstance(output, Tensor) or not output.requires_grad:
        return {"output": output, "gradients": "none"}
    if hasattr(call, "zero_grad"):
        call.zero_grad()
    weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64) ** 3 + 0.5
    (output.double() * weights.view(output.shape)).sum().backward()  # type: ignore[no-untyped-call]
    found: dict[str, Any] = {"output": output.detach()}
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.requires_grad:
            found[f"input {place}"] = leaf.grad
    if hasattr(call, "named_parameters"):
        found |= {f"parameter {name}": p.grad for name, p in call.named_parameters()}
    return found


def written(student: Student, call: Callable[..., Any], *inputs: Any) -> list[Any]:
    """Return the arguments `inputs` in their state after a call.

    Example::

        @check.case(about="writes")
        def argument(student, rng):
            \"\"\"X afterwards.\"\"\"
            return written(student, student.masked_softmax, rng.randn(2, 3, 5), None)
    """
    tensors = [value for value in inputs if isinstance(value, Tensor)]
    with code_of(student).sharing(*tensors):
        call(*inputs)
    return [value.detach() for value in tensors]


def works(call: Callable[[], Any]) -> bool:
    """Return whether a call works, if nothing else is asked.

    Code that is not written yet shows nothing, so its error is raised.

    Example::

        @check.case(about="refusals")
        def odd_width_works(student, rng):
            \"\"\"Whether a table of an odd number of columns is made.\"\"\"
            return often(works(lambda: student.table(5, 7)))
    """
    try:
        call()
    except StudentFailure as failure:
        if failure.kind in UNWRITTEN:
            raise
        return False
    except Exception:  # errors of known mistakes, which run in this process
        return False
    return True


def works_too(one: Callable[[], Any], other: Callable[[], Any]) -> list[bool]:
    """Return whether the call `other` works if `one` does, as often as naming needs.

    Raises the error of `one`: an error of every call shows nothing about `other`.

    Example::

        @check.case(about="views")
        def transposed_works(student, rng):
            \"\"\"Whether a transposed X works.\"\"\"
            X = rng.randn(2, 5, 3).transpose(1, 2)
            call, lens = student.masked_softmax, torch.tensor([2, 4])
            return works_too(lambda: call(X.contiguous(), lens), lambda: call(X, lens))
    """
    one()
    return often(works(other))


def works_when_new(module: Any, make: Callable[[], Any], x: Tensor) -> list[bool]:
    """Return whether a new module works for x in float32, as often as naming needs.

    Raises the error of `module`, which has given parameters and a given dtype.

    Example::

        @check.case(about="dtype")
        def new_module_works(student, rng):
            \"\"\"Whether a new module works, in float32.\"\"\"
            module = build(student.LayerNorm, 3, rng=rng)
            return works_when_new(module, lambda: student.LayerNorm(3), rng.randn(2, 5, 3))
    """
    return works_too(lambda: module(x), lambda: make()(x.float()))


def works_elsewhere(make: Callable[[], Any], x: Tensor) -> list[bool]:
    """Return whether a new module works for x on another device, as often as naming needs.

    Raises the error of the module on this device.

    Example::

        @check.case(about="devices")
        def moved(student, rng):
            \"\"\"Whether the module works after a move to another device.\"\"\"
            return works_elsewhere(lambda: student.LayerNorm(3), rng.randn(2, 5, 3).float())
    """
    return works_too(lambda: make()(x), lambda: assert_moves(make, x))


def finite_too(one: Tensor, other: Tensor) -> Tensor:
    """Return which numbers of the output `other` are finite, or nan unless all of `one` are.

    Code that gives nan everywhere shows nothing about one call.

    Example::

        @check.case(about="length 0")
        def finite_rows(student, rng):
            \"\"\"Which weights are finite where some queries have length 0.\"\"\"
            X, call = rng.randn(2, 3, 5), student.masked_softmax
            return finite_too(call(X, None), call(X, torch.tensor([[0, 2, 1], [3, 0, 0]])))
    """
    return known(other.isfinite(), one)


def seeded(
    student: Student, seed: int, *, only_torch: bool = False
) -> AbstractContextManager[None]:
    """Seed torch's generator where the student's code runs, for the calls in the block.

    Python's and NumPy's generators are seeded as well, unless `only_torch` is set.

    Example::

        @check.case(about="training")
        def dropped(student, rng):
            \"\"\"Which weights are dropped.\"\"\"
            attention = build(student.CausalAttention, 3, 4, 6, 0.5, rng=rng).train()
            with seeded(student, 1):
                return attention(rng.randn(2, 5, 3))
    """
    code_of(student).manual_seed(seed, only_torch=only_torch)
    return contextlib.nullcontext()


def steps_reported(student: Student, steps: int, train: Callable[[Any], Any]) -> list[int]:
    """Return how often each number from 0 to `steps + 1` is reported by `train(report)`.

    It trains a model for `steps` steps. The counts are repeated as often as naming needs.

    Example::

        @check.case(about="training")
        def reports(student, rng):
            \"\"\"How often each number from 0 to 5 is reported while there are four steps.\"\"\"
            x = rng.randn(5, 3)
            return steps_reported(student, 4, lambda to: student.fit(student.Norm(3), x, 4, to))
    """
    with code_of(student).training("a few steps") as (report, log):
        train(report)
    numbers = [number for number, _ in log.losses]
    return often(*(numbers.count(number) for number in range(steps + 2)))
