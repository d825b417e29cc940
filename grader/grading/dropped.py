"""Descriptions of dropout that do not depend on the random draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from grader.errors import Mismatch
from grader.grading.told import known, often
from grader.sandbox.host.proxies import Student, code_of

LUCK = "a matter of luck"  # the answer for code whose draws no case can foresee
FEW = 4  # values of a number, depending on whether two others are dropped
LEVELS = (0.2, 0.4, 0.6, 0.8)  # of a share of zeros; at usual rates, no right share is near one
CALLS, COPIES = 16, 400  # draws over which a share of zeros is counted
DRAWS = 800  # draws that have every combination of a few dropped numbers
ALIKE = 1e-3  # as a part of a number's largest draw: the most that two equal draws may differ
MAX_COMPARED = 1_000  # numbers compared with each other


def dropped_weights(outputs: Tensor, values: Tensor, visible: Tensor) -> dict[str, Tensor]:
    """Return how dropout treats weights in many draws, which does not depend on the draws.

    `outputs` are the outputs for one input, (draws, ..., n_queries, d), and `values` the factors
    of the weights, (..., n_keys, d); they determine the weights, so d must be at least n_keys.
    `visible` marks the weights that count, (n_queries, n_keys).

    The first query attends to one key, and the second to two. "weights" says which weights are
    always either 0 or one other number, and "outputs" the same of the outputs. "few" says whether
    the second query's outputs have no more values than two draws give, and "apart" which of two
    weights are dropped without the other: (weights, weights). All are nan unless all outputs are
    finite.

    Example::

        @check.case(about="training")
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
    return {name: known(each, outputs) for name, each in said.items()}


def share_of_zeros(student: Student, call: Callable[..., Any], *inputs: Tensor) -> Tensor | str:
    """Return which levels the share of zeros exceeds, for each number of an output.

    The levels are 0.2, 0.4, 0.6 and 0.8: (4, ...). The call gets many copies of the inputs, whose
    first axis has size 1. If all copies lose the same numbers, the share is `LUCK`.

    Example::

        @check.case(about="training")
        def share_dropped(student, rng):
            \"\"\"How often a single token is dropped at a rate of 0.3.\"\"\"
            attention = build(student.CausalAttention, 3, 4, 6, 0.3, rng=rng).train()
            return share_of_zeros(student, attention, rng.randn(1, 1, 3))
    """
    copies = [each.expand(COPIES, *each.shape[1:]).clone() for each in inputs]
    code_of(student).manual_seed(5)
    outputs = torch.stack([call(*copies) for _ in range(CALLS)])  # (calls, copies, ...)
    zero = outputs == 0
    if (zero == zero[:, :1]).all() and (zero != zero[:1]).any():
        return LUCK
    share = zero.double().mean((0, 1))
    return known(torch.stack([share > level for level in LEVELS]), outputs)


def extremes(
    student: Student,
    call: Callable[..., Tensor],
    *inputs: Tensor,
    two_keys: Callable[..., Tensor] | None = None,
) -> dict[str, Tensor | str]:
    """Return the largest and the smallest numbers that an output has in many draws.

    The call gets many copies of the inputs, whose first axis has size 1. Every combination of a
    few dropped numbers occurs, so the extremes do not depend on the draws. They are `LUCK` if all
    copies lose the same numbers, or if `two_keys`, a call with these inputs in which the first
    query attends to one key and the second to two, shows that numbers behind the weights are
    dropped.

    Example::

        @check.case(about="training")
        def dropped(student, rng):
            \"\"\"The largest and smallest outputs in training with dropout of a half.\"\"\"
            attention = build(student.CausalAttention, 3, 4, 6, 0.5, rng=rng).train()
            return extremes(student, attention, rng.randn(1, 4, 3), two_keys=attention)
    """
    copies = [each.expand(DRAWS, *each.shape[1:]).clone() for each in inputs]
    code_of(student).manual_seed(3)
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

        @check.case(about="training")
        def weights_dropped(student, rng):
            \"\"\"Which weights of two items are dropped together, over 40 draws.\"\"\"
            attention = student.DotProductAttention(0.5).train()
            queries, keys, values = (rng.randn(2, 3, 4) for _ in range(3))
            return weights_dropped_together(student, attention, queries, keys, values)
    """
    lens = torch.tensor([[1, 2, 3], [1, 2, 3]])
    code_of(student).manual_seed(7)
    outputs = torch.stack([attention(queries, keys, values, lens) for _ in range(40)])
    return dropped_weights(outputs, values, torch.ones(3, 3).tril().bool())


def factors_of_kept_weights(
    student: Student, attention: Any, without: Any, queries: Tensor, keys: Tensor
) -> dict[str, Any]:
    """Return the factors of the weights that a module keeps, for any draws.

    `without` is the same module without dropout. The values are the unit matrix twice, so that an
    output holds the weights twice; "pairs" says whether a weight is dropped from both halves. If
    there is no single factor, numbers behind the weights are dropped, and the answer is `LUCK`.

    Example::

        @check.case(about="training")
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
    code_of(student).manual_seed(1)
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

        @check.case(about="training")
        def share_of_a_quarter(student, rng):
            \"\"\"Whether about a quarter of the weights are dropped at a rate of 0.25.\"\"\"
            attention = student.DotProductAttention(0.25).train()
            inputs = rng.randn(1, 5, 4), rng.randn(1, 6, 4)
            return often(abs(share_of_weights_dropped(student, attention, *inputs) - 0.25) < 0.03)
    """
    eye = torch.eye(keys.shape[1], dtype=keys.dtype)  # (n_keys, n_keys)
    copies = [tensor.repeat(DRAWS, 1, 1) for tensor in (queries, keys, eye)]
    code_of(student).manual_seed(5)
    return float((attention(*copies) == 0).double().mean())


def drops_anew(student: Student, attention: Any, *inputs: Tensor) -> list[bool]:
    """Return whether the next call of a module with the same inputs gives another output.

    Example::

        @check.case(about="training")
        def next_call(student, rng):
            \"\"\"Whether the next call drops other weights.\"\"\"
            attention = student.DotProductAttention(0.4).train()
            return drops_anew(student, attention, *(rng.randn(12, 5, 4) for _ in range(3)))
    """
    code_of(student).manual_seed(5)
    first, second = (attention(*inputs) for _ in range(2))
    return often(bool((first != second).any()))


def weights_kept_in_training(
    student: Student, attention: Any, first: tuple[Tensor, ...], last: tuple[Tensor, ...]
) -> dict[str, Any]:
    """Return the `attention_weights` after calls with two inputs: of the last, without dropout.

    "zeros" says whether one of the first two keys, which are visible to all queries, has the
    weight 0. If another call with the last inputs keeps other weights, they are `LUCK`.

    Example::

        @check.case(about="training")
        def kept(student, rng):
            \"\"\"The attention_weights of the second call in training mode.\"\"\"
            attention = student.DotProductAttention(0.4).train()
            first, last = (tuple(rng.randn(2, 5, 4) for _ in range(3)) for _ in range(2))
            return weights_kept_in_training(student, attention, first, last)
    """
    code_of(student).manual_seed(1)
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


def _are_alike(first: Tensor, second: Tensor) -> bool:
    """Return whether numbers differ at most by rounding, as they do in batches of other sizes."""
    return torch.allclose(first, second, rtol=ALIKE, atol=ALIKE, equal_nan=True)


def _varies_freely(outputs: Tensor) -> bool:
    """Return whether draws show drops of anything but weights, scores, values or outputs.

    `outputs` is (draws, n_queries, d). The results of such code depend on luck, in any number of
    draws: it drops numbers of the queries or the keys, or of their inputs.
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
