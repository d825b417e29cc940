"""The vocabulary of suites: the functions that tests of exercises use.

A suite is a pytest file with the fixtures `student`, `reference` and `rng`. The functions accept
the student's code in its own process and plain modules. A failed check raises `CheckFailure`, so
no verdict can be dropped. Each example is a test of a hidden suite and runs as it is.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from grader.errors import CheckFailure, Mismatch, StudentFailure
from grader.grading.compare import assert_close, assert_same, describe, expect
from grader.grading.rng import Rng
from grader.sandbox import wire
from grader.sandbox.host import proxies
from grader.sandbox.host.proxies import Remote, Student, code_of
from grader.sandbox.worker.adopt import adopt

__all__ = [
    "Rng",
    "assert_close",
    "assert_same",
    "assert_same_gradients",
    "assert_unchanged",
    "assert_vectorised",
    "assert_written_by_hand",
    "expect",
    "manual_seed",
    "output_of",
    "raises",
    "sharing",
    "twins",
    "watched",
]


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


def manual_seed(student: Student, seed: int) -> None:
    """Seed torch's generator where the student's code runs.

    Example::

        def test_dropout_repeats(student):
            \"\"\"The same seed drops the same weights.\"\"\"
            manual_seed(student, 7)
            first = student.drop(torch.ones(2, 3, 4), 0.5)
            manual_seed(student, 7)
            again = student.drop(torch.ones(2, 3, 4), 0.5)
            assert_same(again, first, "the weights that are left", shape=(2, 3, 4))
    """
    code_of(student).manual_seed(seed)


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


def watched(
    student: Student, *, kernels: bool = True
) -> AbstractContextManager[proxies.OperationCounts]:
    """Count the tensor operations of every call in the block.

    `counts["torch.bmm"]` counts calls of the function; with `kernels`, `counts["aten.bmm"]` counts
    runs of the operation, also within others. Code that hides operations from the count raises
    `StudentFailure`.

    Example::

        def test_one_product(student, rng):
            \"\"\"One matrix product is enough.\"\"\"
            with watched(student) as seen:
                student.scores(rng.randn(2, 3, 4), rng.randn(2, 5, 4))
            expect(seen.counts["aten.bmm"] == 1, "use one batched product")
    """
    return code_of(student).watched(kernels=kernels)


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
    found, wanted = _shapes(theirs), _shapes(ours)
    if found != wanted:
        raise Mismatch(f"the parameters are {_listed(found)}, where {_listed(wanted)} are expected")
    count = sum(math.prod(shape) for shape in wanted.values())
    values = (rng.randn(count) * 0.5 + 0.25).to(dtype)
    adopt(ours, values.clone())
    if isinstance(theirs, Remote):
        proxies.adopt_remote(theirs, values)
    else:
        adopt(theirs, values)
    return theirs, ours


def _shapes(module: Any) -> dict[str, tuple[int, ...]]:
    if isinstance(module, nn.Module):
        return {name: tuple(p.shape) for name, p in module.named_parameters()}
    if not isinstance(module, Remote):
        raise Mismatch(f"the class gives {describe(module)}, where an nn.Module is expected")
    return proxies.parameter_shapes(module)


def _listed(parameters: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in parameters.items()) or "none"


def assert_same_gradients(
    student: Any,
    reference: Any,
    *inputs: Any,
    names: Sequence[str],
    upstream: Callable[[Tensor], Tensor] | None = None,
) -> None:
    """Compare the outputs, and the gradients for the inputs and for parameters, if there are any.

    `names` are the inputs' names in the exercise. The gradients are of `upstream(output)`; by
    default, that is a sum of the output with different weights.

    Example::

        def test_gradients(student, reference, rng):
            \"\"\"Gradients of the output reach x.\"\"\"
            x = rng.randn(2, 5, 7)  # (batch, n_tokens, d_model)
            assert_same_gradients(student.center, reference.center, x, names=["x"])
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
    student: Student, call: Callable[..., Any], *inputs: Any, names: Sequence[str]
) -> Any:
    """Return the result of a call; raise `Mismatch` if it writes into one of `inputs`.

    Example::

        def test_leaves_x_alone(student, rng):
            \"\"\"The argument is not written into.\"\"\"
            assert_unchanged(student, student.center, rng.randn(2, 5), names=["x"])
    """
    given = [_copy(value) if isinstance(value, Tensor) else value for value in inputs]
    with sharing(student, *(value for value in given if isinstance(value, Tensor))):
        result = call(*given)
    for name, old, new in zip(names, inputs, given):
        if isinstance(old, Tensor):
            same = wire.pack_tensor(old).data == wire.pack_tensor(new).data
            expect(same, f"your code wrote into its argument {name}; work on a new tensor")
    return result


def _copy(value: Tensor) -> Tensor:
    return value.detach().clone().requires_grad_(value.requires_grad)


def assert_vectorised(student: Student, small: Callable[[], Any], large: Callable[[], Any]) -> None:
    """Raise `Mismatch` if `large` takes more tensor operations than `small`.

    Example::

        def test_has_no_loop(student, rng):
            \"\"\"No Python loop runs over the batch.\"\"\"
            small, large = rng.randn(2, 5), rng.randn(20, 5)  # (batch, n_tokens)
            assert_vectorised(student, lambda: student.center(small), lambda: student.center(large))
    """
    counts = []
    for call in (small, large):
        with watched(student, kernels=False) as seen:
            call()
        counts.append(seen.operations)
    expect(
        counts[1] <= counts[0],
        f"{counts[0]} tensor operations became {counts[1]} when the sizes grew: "
        "replace the Python loop by operations on whole tensors",
    )


def assert_written_by_hand(student: Student, *calls: Callable[[], Any]) -> None:
    """Raise `StudentFailure` for a forbidden call in the source or while `calls` run.

    Other failures of `calls` are ignored: other tests report them.

    Example::

        def test_written_by_hand(student, rng):
            \"\"\"The work is done by your own code.\"\"\"
            assert_written_by_hand(student, lambda: student.center(rng.randn(2, 5)))
    """
    code = code_of(student)
    if found := code.forbidden_in_source():
        raise StudentFailure("Forbidden", _forbidden(found[0].function), tuple(found[:1]))
    for call in calls:
        with contextlib.suppress(CheckFailure, Exception), watched(student) as seen:
            call()
        seen.check()
        for name in seen.counts:
            plain = "torch." + name.partition(".")[2]
            if any(fnmatchcase(plain, pattern) for pattern in code.forbidden):
                raise StudentFailure("Forbidden", _forbidden(plain))


def _forbidden(name: str) -> str:
    return f"{name} does the work that this exercise asks you to write"
