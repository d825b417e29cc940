"""The vocabulary of probes: calls whose answers tell one mistake from another.

An exercise's `probes.py` holds functions with the mark `@probe(aspect)`. Each takes the student's
code and a source of random inputs, and returns what the calls gave: tensors, numbers, or lists
and mappings of them. The reference, every known mistake and the student's code answer the same
probes; a diagnosis compares the answers. A probe has no verdict and costs no points.
"""

from __future__ import annotations

import contextlib
import functools
import math
import zlib
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch
from torch import Tensor

from grader.errors import Mismatch, StudentFailure
from grader.grading.aspects import ASPECTS, EDGES, Aspect, aspect_of
from grader.grading.parameters import give_parameters, parameter_shapes
from grader.grading.rng import Rng
from grader.report import UNWRITTEN
from grader.sandbox.host.proxies import Student, code_of

__all__ = [
    "ACCEPTED",
    "ASPECTS",
    "EDGES",
    "LUCK",
    "Aspect",
    "Rng",
    "build",
    "dropped_weights",
    "drops_anew",
    "extremes",
    "factors_of_kept_weights",
    "finite_too",
    "gradients",
    "often",
    "probe",
    "reported",
    "seeded",
    "share_of_weights_dropped",
    "share_of_zeros",
    "weights_dropped_together",
    "weights_kept_in_training",
    "works",
    "works_too",
    "works_when_new",
    "written",
]

MAX_PARAMETERS = 1_000_000  # numbers in the parameters of one module
MAX_KEPT = 1_000  # numbers of one parameter that are kept
MANY = 12  # numbers that show a mistake: more than chance gives, and than a name needs
MAX_COMPARED = 1_000  # numbers that are compared with each other
LUCK = "a matter of luck"  # the answer where code draws in a way that no probe can foresee
FEW = 4  # values that a number has if two others are dropped, or not
LEVELS = (0.2, 0.4, 0.6, 0.8)  # of a share of zeros; at a usual rate, no right one is near
CALLS, COPIES = 16, 400  # that a share of zeros is counted over
DRAWS = 800  # in which every combination of a few dropped numbers comes up
ALIKE = 1e-3  # of the largest draw of a number, what two draws of one number may differ by

ACCEPTED = [True] * MANY  # what a probe returns after a call that must be refused

F = TypeVar("F", bound=Callable[..., Any])


def probe(aspect: str | Aspect, *, decides: bool = True) -> Callable[[F], F]:
    """Mark a function of `probes.py` as a probe of `aspect`: one of `ASPECTS`, or an own `Aspect`.

    In a students' copy, code that answers a probe otherwise than the reference is not right. If
    right code may do so, because it draws or rounds in its own way, the probe does not decide.

    Example::

        @probe("values")
        def ordinary(student, rng):
            \"\"\"A length for each batch item.\"\"\"
            return student.masked_softmax(rng.randn(2, 3, 5), torch.tensor([2, 4]))
    """
    about = aspect_of(aspect) if isinstance(aspect, str) else aspect
    if about.name in ASPECTS and about != aspect_of(about.name):
        raise ValueError(f"there is an aspect {about.name!r} already; choose another name")

    def mark(function: F) -> F:
        function.__aspect__ = about  # type: ignore[attr-defined]
        function.__decides__ = decides  # type: ignore[attr-defined]
        return function

    return mark


def build(
    made: Callable[..., Any],
    *args: Any,
    rng: Rng,
    dtype: torch.dtype = torch.float64,
    layers: Collection[str] = (),
    **kwargs: Any,
) -> Any:
    """Return the module `made(*args, **kwargs)` with random parameters, in evaluation mode.

    With `layers`, the parameters of other layers keep their values.

    What a parameter is filled with depends on its name and the seed alone, so that two modules
    with the same parameters compute the same, in whatever order they were made.

    Example::

        @probe("values")
        def ordinary(student, rng):
            \"\"\"Fewer tokens than the context is long.\"\"\"
            attention = build(student.CausalAttention, 3, 4, 6, 0.0, rng=rng)
            return attention(rng.randn(2, 5, 3))
    """
    module = made(*args, **kwargs)
    shapes = parameter_shapes(module)
    if sum(map(math.prod, shapes.values())) > MAX_PARAMETERS:
        raise Mismatch("the module has far more parameters than the exercise asks for")
    state = {
        # A student decides how large parameters are, and what is kept must stay small.
        name: (_kept_filling if math.prod(shape) <= MAX_KEPT else _filling)(name, shape, rng.seed)
        for name, shape in shapes.items()
        if not layers or name.partition(".")[0] in layers
    }
    give_parameters(module, state, dtype)
    return module


def _filling(name: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """Return the numbers of a parameter."""
    own = Rng(seed ^ zlib.crc32(name.encode("utf-8", "surrogatepass")))
    return own.randn(*shape) * 0.5 + 0.25


_kept_filling = functools.lru_cache(maxsize=4096)(_filling)  # many programs are given the same


def gradients(call: Any, *inputs: Any) -> dict[str, Any]:
    """Return the output of `call(*inputs)` and the gradients of a weighted sum of it.

    They are those of the floating-point inputs, and of the parameters if `call` is a module.

    Example::

        @probe("gradient")
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
    """Return the arguments `inputs` as they are after a call.

    Example::

        @probe("writes")
        def argument(student, rng):
            \"\"\"X afterwards.\"\"\"
            return written(student, student.masked_softmax, rng.randn(2, 3, 5), None)
    """
    tensors = [value for value in inputs if isinstance(value, Tensor)]
    with code_of(student).sharing(*tensors):
        call(*inputs)
    return [value.detach() for value in tensors]


def often(*values: Any) -> list[Any]:
    """Return values as often as a name needs: one number more or less shows no mistake.

    Example::

        @probe("layers")
        def has_bias(student, rng):
            \"\"\"Whether the query layer has a bias.\"\"\"
            attention = student.CausalAttention(3, 4, 6, 0.0, True)
            return often("W_query.bias" in dict(attention.named_parameters()))
    """
    return [*values] * MANY


def works(call: Callable[[], Any]) -> bool:
    """Return whether a call works, where only that is asked.

    What is not written yet does not work either, but tells nothing: then this raises.

    Example::

        @probe("refusals")
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
    except Exception:  # of known mistakes, which raise as they are
        return False
    return True


def works_too(one: Callable[[], Any], other: Callable[[], Any]) -> list[bool]:
    """Return whether the call `other` works, where `one` does, as often as a name needs.

    Raises what `one` raises: an error that comes with every call tells nothing of this one.

    Example::

        @probe("views")
        def transposed_works(student, rng):
            \"\"\"Whether a transposed X works.\"\"\"
            X = rng.randn(2, 5, 3).transpose(1, 2)
            call, lens = student.masked_softmax, torch.tensor([2, 4])
            return works_too(lambda: call(X.contiguous(), lens), lambda: call(X, lens))
    """
    one()
    return often(works(other))


def works_when_new(module: Any, make: Callable[[], Any], x: Tensor) -> list[bool]:
    """Return whether a module as it is made works for x in float32, as often as a name needs.

    Raises what the same `module` raises that was given parameters and a dtype.

    Example::

        @probe("dtype")
        def new_module_works(student, rng):
            \"\"\"Whether a new module works, in float32.\"\"\"
            module = build(student.LayerNorm, 3, rng=rng)
            return works_when_new(module, lambda: student.LayerNorm(3), rng.randn(2, 5, 3))
    """
    return works_too(lambda: module(x), lambda: make()(x.float()))


def finite_too(one: Tensor, other: Tensor) -> Tensor:
    """Return which numbers of the output `other` are finite, or nan if not all of `one` are.

    What is nan wherever it is asked tells nothing of one call.

    Example::

        @probe("length 0")
        def finite_rows(student, rng):
            \"\"\"Which weights are finite where some queries have length 0.\"\"\"
            X, call = rng.randn(2, 3, 5), student.masked_softmax
            return finite_too(call(X, None), call(X, torch.tensor([[0, 2, 1], [3, 0, 0]])))
    """
    return _known(other.isfinite(), one)


def seeded(
    student: Student, seed: int, *, only_torch: bool = False
) -> AbstractContextManager[None]:
    """Seed torch's generator where the student's code runs, for the calls in the block.

    Python's and NumPy's are seeded as well, unless `only_torch` is asked for.

    Example::

        @probe("training")
        def dropped(student, rng):
            \"\"\"Which weights are dropped.\"\"\"
            attention = build(student.CausalAttention, 3, 4, 6, 0.5, rng=rng).train()
            with seeded(student, 1):
                return attention(rng.randn(2, 5, 3))
    """
    code_of(student).manual_seed(seed, only_torch=only_torch)
    return contextlib.nullcontext()


def reported(student: Student, train: Callable[[Any], Any]) -> list[tuple[int, float]]:
    """Return the step and the loss of each report while `train(report)` trains a model.

    Example::

        @probe("training")
        def reports(student, rng):
            \"\"\"How often each step from 0 to 5 is reported, of four.\"\"\"
            x = rng.randn(5, 3)
            found = reported(student, lambda report: student.fit(student.Norm(3), x, 4, report))
            steps = [step for step, _ in found]
            return often(*(steps.count(step) for step in range(6)))
    """
    with code_of(student).training("a few steps") as (report, log):
        train(report)
    return list(log.losses)


def dropped_weights(outputs: Tensor, values: Tensor, visible: Tensor) -> dict[str, Tensor]:
    """Return how dropout treats weights in many draws, which does not depend on what is drawn.

    `outputs` are those of one and the same input, (draws, ..., n_queries, d), and `values` what the
    weights are multiplied by, (..., n_keys, d); they determine the weights, so d must not be less
    than n_keys. `visible` marks the weights that count, (n_queries, n_keys).

    The first query attends to one key, and the second to two. "weights" says which weights are
    always either 0 or one other number, "outputs" which numbers of the outputs, "few" whether
    those of the second query have no more values than two draws give, and "apart" which of two
    weights are dropped without the other: (weights, weights). All is nan unless all outputs are
    finite.

    Example::

        @probe("training")
        def dropped_together(student, rng):
            \"\"\"Which weights are dropped together at a rate of a half.\"\"\"
            attention = student.DotProductAttention(0.5).train()
            queries, keys, values = (rng.randn(2, 3, 4) for _ in range(3))
            lens = torch.tensor([[1, 2, 3], [1, 2, 3]])
            draws = [attention(queries, keys, values, lens) for _ in range(40)]
            return dropped_weights(torch.stack(draws), values, torch.ones(3, 3).tril().bool())
    """
    outputs, values = outputs.detach().double(), values.detach().double()
    if outputs[0].numel() > MAX_COMPARED:
        raise Mismatch("the output is far larger than the exercise asks for")
    weights = outputs @ torch.linalg.pinv(values)  # (draws, ..., n_queries, n_keys)
    are_whole, zero = _whole(weights[..., visible].flatten(1))  # (weights,), (draws, weights)
    are_dropped = are_whole & zero.any(0) & ~zero.all(0)  # (weights,)
    differ = (zero.unsqueeze(2) != zero.unsqueeze(1)).any(0)  # (weights, weights)
    said = {
        "weights": are_whole,
        "few": _number_of_values(outputs[..., 1, :].flatten(1)) <= FEW,
        "apart": differ & are_dropped & are_dropped.unsqueeze(1),
        "outputs": _whole(outputs.flatten(1))[0],
    }
    return {name: _known(each, outputs) for name, each in said.items()}


def share_of_zeros(student: Student, call: Callable[..., Any], *inputs: Tensor) -> Tensor | str:
    """Return above which levels the share of zeros lies of each number in an output.

    The first value is of 0.2, then come 0.4, 0.6 and 0.8: (4, ...). Many copies of the inputs are
    given, whose first axis is of size 1. If all copies lose the same, the share is `LUCK`.

    Example::

        @probe("training")
        def share_dropped(student, rng):
            \"\"\"How often a single token is dropped at a rate of 0.3.\"\"\"
            attention = build(student.CausalAttention, 3, 4, 6, 0.3, rng=rng).train()
            return share_of_zeros(student, attention, rng.randn(1, 1, 3))
    """
    copies = [each.expand(COPIES, *each.shape[1:]).clone() for each in inputs]
    with seeded(student, 5):
        outputs = torch.stack([call(*copies) for _ in range(CALLS)])  # (calls, copies, ...)
    zero = outputs == 0
    if (zero == zero[:, :1]).all() and (zero != zero[:1]).any():
        return LUCK
    share = zero.double().mean((0, 1))
    return _known(torch.stack([share > level for level in LEVELS]), outputs)


def extremes(
    student: Student,
    call: Callable[..., Tensor],
    *inputs: Tensor,
    two_keys: Callable[..., Tensor] | None = None,
) -> dict[str, Tensor | str]:
    """Return the largest and the smallest numbers that an output has in many draws.

    Many copies of the inputs are given, whose first axis is of size 1. Every combination of a few
    dropped numbers comes up, so that the extremes do not depend on what draws them. They are `LUCK`
    if all copies lose the same, or if `two_keys` shows that numbers behind the weights are dropped:
    a call with these inputs in which the first query attends to one key, and the second to two.

    Example::

        @probe("training")
        def dropped(student, rng):
            \"\"\"The largest and smallest outputs in training with dropout of a half.\"\"\"
            attention = build(student.CausalAttention, 3, 4, 6, 0.5, rng=rng).train()
            return extremes(student, attention, rng.randn(1, 4, 3), two_keys=attention)
    """
    copies = [each.expand(DRAWS, *each.shape[1:]).clone() for each in inputs]
    with seeded(student, 3):
        outputs = call(*copies).detach()  # (draws, ...)
        is_one_draw = _are_alike(outputs, outputs[:1]) and not _are_alike(outputs, call(*inputs))
        is_luck = is_one_draw or (two_keys is not None and _varies_freely(two_keys(*copies)))
    if is_luck:
        return {"largest": LUCK, "smallest": LUCK}
    return {"largest": outputs.amax(0), "smallest": outputs.amin(0)}


def weights_dropped_together(
    student: Student, attention: Any, queries: Tensor, keys: Tensor, values: Tensor
) -> dict[str, Tensor]:
    """Return the `dropped_weights` of 40 calls of a module with lengths from 1 to 3.

    The inputs are those of two items with three queries and three keys.

    Example::

        @probe("training")
        def weights_dropped(student, rng):
            \"\"\"Which weights of two items are dropped together, over 40 draws.\"\"\"
            attention = student.DotProductAttention(0.5).train()
            queries, keys, values = (rng.randn(2, 3, 4) for _ in range(3))
            return weights_dropped_together(student, attention, queries, keys, values)
    """
    lens = torch.tensor([[1, 2, 3], [1, 2, 3]])
    with seeded(student, 7):
        outputs = torch.stack([attention(queries, keys, values, lens) for _ in range(40)])
    return dropped_weights(outputs, values, torch.ones(3, 3).tril().bool())


def factors_of_kept_weights(
    student: Student, attention: Any, without: Any, queries: Tensor, keys: Tensor
) -> dict[str, Any]:
    """Return what the weights that a module keeps are multiplied by, for any draws.

    `without` is the same module without dropout. The values are the unit matrix twice, so that an
    output holds the weights twice; "pairs" says whether a weight is dropped from both halves. If
    there is no one factor, numbers behind the weights are dropped, and all is `LUCK`.

    Example::

        @probe("training")
        def in_training(student, rng):
            \"\"\"What dropout makes of weights, where the values are the unit matrix, twice.\"\"\"
            attention, without = (student.DotProductAttention(rate) for rate in (0.4, 0.0))
            queries, keys = rng.randn(2, 5, 4), rng.randn(2, 6, 4)
            return factors_of_kept_weights(student, attention.train(), without, queries, keys)
    """
    batch, n_keys, _ = keys.shape
    eye = torch.eye(n_keys, dtype=keys.dtype)  # (n_keys, n_keys)
    inputs = queries, keys, torch.cat([eye, eye], 1).repeat(batch, 1, 1)
    weights = without(*inputs)  # (batch, n_queries, 2 * n_keys)
    with seeded(student, 1):
        output = attention(*inputs)
    dropped = output == 0
    factors = (output / weights)[~dropped].detach()
    if factors.numel() and (factors - factors.mean()).abs().max() > ALIKE:
        return {"factors": LUCK, "pairs": LUCK}
    factors = torch.full_like(output, float(factors.mean().nan_to_num()))
    are_pairs = torch.equal(dropped[..., :n_keys], dropped[..., n_keys:])
    return {"factors": factors, "pairs": often(are_pairs)}


def share_of_weights_dropped(
    student: Student, attention: Any, queries: Tensor, keys: Tensor
) -> float:
    """Return the share of the weights that a module drops; the inputs are those of one item.

    Example::

        @probe("training")
        def share_of_a_quarter(student, rng):
            \"\"\"Whether about a quarter of the weights are dropped at a rate of 0.25.\"\"\"
            attention = student.DotProductAttention(0.25).train()
            inputs = rng.randn(1, 5, 4), rng.randn(1, 6, 4)
            return often(abs(share_of_weights_dropped(student, attention, *inputs) - 0.25) < 0.03)
    """
    eye = torch.eye(keys.shape[1], dtype=keys.dtype)  # (n_keys, n_keys)
    copies = [tensor.repeat(DRAWS, 1, 1) for tensor in (queries, keys, eye)]
    with seeded(student, 5):
        return float((attention(*copies) == 0).double().mean())


def drops_anew(student: Student, attention: Any, *inputs: Tensor) -> list[bool]:
    """Return whether the next call of a module with the same inputs gives another output.

    Example::

        @probe("training")
        def next_call(student, rng):
            \"\"\"Whether the next call drops other weights.\"\"\"
            attention = student.DotProductAttention(0.4).train()
            return drops_anew(student, attention, *(rng.randn(12, 5, 4) for _ in range(3)))
    """
    with seeded(student, 5):
        first, second = (attention(*inputs) for _ in range(2))
    return often(bool((first != second).any()))


def weights_kept_in_training(
    student: Student, attention: Any, first: tuple[Tensor, ...], last: tuple[Tensor, ...]
) -> dict[str, Any]:
    """Return the `attention_weights` after calls with two inputs: of the last, without dropout.

    "zeros" says whether some of the first two keys has the weight 0, to which all may attend. If
    another call with the last inputs keeps other weights, they are `LUCK`.

    Example::

        @probe("training")
        def kept(student, rng):
            \"\"\"The attention_weights of the second call in training mode.\"\"\"
            attention = student.DotProductAttention(0.4).train()
            first, last = (tuple(rng.randn(2, 5, 4) for _ in range(3)) for _ in range(2))
            return weights_kept_in_training(student, attention, first, last)
    """
    with seeded(student, 1):
        attention(*first)
        kept = []
        for _ in range(2):
            attention(*last)
            kept.append(attention.attention_weights)
    one, other = kept
    are_dropped = bool((torch.stack(kept)[..., :2] == 0).any())
    return {
        "attention_weights": one if torch.equal(one, other) else LUCK,
        "zeros": often(are_dropped),
    }


def _known(said: Tensor, outputs: Tensor) -> Tensor:
    """Return what is said of outputs, or nan: where one is not finite, none tells what it lacks."""
    return (
        said if outputs.isfinite().all() else torch.full_like(said, torch.nan, dtype=torch.double)
    )


def _are_alike(first: Tensor, second: Tensor) -> bool:
    """Return whether numbers differ by rounding at most, as they do in batches of other sizes."""
    return torch.allclose(first, second, rtol=ALIKE, atol=ALIKE, equal_nan=True)


def _varies_freely(outputs: Tensor) -> bool:
    """Return whether draws show that more is dropped than weights, scores, values or outputs.

    `outputs` is (draws, n_queries, d). What such code gives depends on luck, in however many draws:
    numbers of the queries or the keys are dropped, or of what these are made of.
    """
    first, second = (_number_of_values(outputs.detach()[:, place]).max() for place in (0, 1))
    return bool(first > 2 or (first == 1 and second > FEW))  # 2: 0, and another number


def _number_of_values(draws: Tensor) -> Tensor:
    """Return how many different values each number has: (numbers,), from (draws, numbers)."""
    steps = draws.sort(dim=0).values.diff(dim=0)  # (draws - 1, numbers)
    return (steps > ALIKE * draws.abs().amax(0)).sum(0) + 1


def _whole(draws: Tensor) -> tuple[Tensor, Tensor]:
    """Return which numbers are always either 0 or one other number, and where they are 0.

    `draws` is (draws, numbers), and so is the second value.
    """
    most = draws.abs().amax(0)  # (numbers,)
    zero = draws.abs() <= ALIKE * most
    return (zero | ((draws.abs() - most).abs() <= ALIKE * most)).all(0), zero
