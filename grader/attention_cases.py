"""Cases of dropout and of hidden tokens that suites of attention share.

A module of self-attention takes x, (batch, n_tokens, d_in), and returns (batch, n_tokens, d_out):
the outputs of its heads side by side, each as the weights times the values. Where a layer follows,
the suite fills it with the identity matrix (`identity`). `values(state)` returns, from a
`state_dict`, the weights of all heads that turn x into values, (d_out, d_in): by default
`W_value.weight`.

A module of attention between pairs takes queries, keys and values, and lengths if there are any.
`inputs(**sizes)` are the recipes of the first three, with any of the sizes `batch`, `n_queries`,
`n_keys` and `d_value`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from grader.authors import (
    Check,
    Recipe,
    Rng,
    Target,
    assert_close,
    assert_drawn_anew,
    assert_dropped,
    drawn,
    dropped_weights,
    drops_anew,
    extremes,
    factors_of_kept_weights,
    filled,
    finite_too,
    in_turn,
    often,
    output,
    output_of,
    seeded,
    share_of_weights_dropped,
    share_of_zeros,
    weights_dropped_together,
    weights_kept_in_training,
)
from grader.grading.cases import Ask

RATE = 0.39  # not a multiple of a tenth, so that code that cuts it to tenths is found
Maker = Callable[[Any, Rng], Any]  # a maker of a module, as `built` returns
Values = Callable[[dict[str, Tensor]], Tensor]
FAR = torch.tensor([1e2, 1e4, 1e6], dtype=torch.float64).view(3, 1, 1)


def _usual_values(state: dict[str, Tensor]) -> Tensor:
    return state["W_value.weight"]


def _by_head(outputs: Tensor, heads: int) -> Tensor:
    """Return (..., heads, n_tokens, d_head), of (..., n_tokens, d_out)."""
    return outputs.view(*outputs.shape[:-1], heads, -1).transpose(-3, -2)


def dropout_cases(
    check: Check,
    make: Callable[..., Maker],
    d_in: int,
    *,
    heads: int = 1,
    values: Values = _usual_values,
) -> None:
    """Add cases to a check: weights are dropped at the rate, and the others scaled up.

    `make(dropout=…, training=True)` is the `built` module, each of whose heads has at least three
    features. `each_on_its_own` makes the hidden case for the part that only decides.

    Example::

        test_dropout = Check("Weights are dropped.", about="training")
        def averages(dropout, training):
            return built("Averages", 4, dropout, training=training)
        dropout_cases(test_dropout, averages, 4)
    """
    half, less = (make(dropout=rate, training=True) for rate in (0.5, 0.3))
    check.case(
        "Training without dropout.", output(make(dropout=0.0, training=True), drawn(2, 4, d_in))
    )

    @check.case("Which weights of two sentences are dropped together, over 40 draws.")
    def together(student: Any, rng: Rng) -> Any:
        module, x = half(student, rng), rng.randn(1, 3, d_in).repeat(2, 1, 1) * 0.5
        v = _by_head((x @ values(module.state_dict()).T).detach(), heads)
        with seeded(student, 7):
            outputs = torch.stack([module(x) for _ in range(40)])
        return dropped_weights(_by_head(outputs, heads), v, torch.ones(3, 3).tril().bool())

    @check.case("How often the value of a first token is dropped at a rate of 0.3.")
    def share(student: Any, rng: Rng) -> Any:
        module = less(student, rng)
        return share_of_zeros(student, lambda x: module(x)[:, 0], rng.randn(1, 2, d_in))

    @check.case("The largest and smallest outputs of a token alone at a rate of 0.3.")
    def alone(student: Any, rng: Rng) -> Any:
        return extremes(student, less(student, rng), rng.randn(1, 1, d_in))

    for rate, made, n_tokens in ((0.5, half, 4), (0.3, less, 3)):

        def most_and_least(
            student: Any, rng: Rng, made: Maker = made, n_tokens: int = n_tokens
        ) -> Any:
            module = made(student, rng)
            return extremes(student, module, rng.randn(1, n_tokens, d_in), two_keys=module)

        sentence = f"The largest and smallest outputs in training with a dropout of {rate}."
        check.case(sentence, most_and_least, decides=False)


def each_on_its_own(
    make: Callable[..., Maker],
    d_in: int,
    *,
    heads: int = 1,
    values: Values = _usual_values,
    n_tokens: int = 3,
    rate: float = RATE,
) -> Ask:
    """Return a case: each weight is dropped or scaled up on its own, others in the next call.

    It decides alone (`tells=False`): it raises if not. `make(dropout=…)` is the `built` module in
    evaluation mode, whose heads have at least `n_tokens` features.

    Example::

        test_each = Check("Each weight is dropped on its own.", about="training")
        def averages(dropout):
            return built("Averages", 4, dropout)
        test_each.case("Three tokens.", each_on_its_own(averages, 4), tells=False)
    """

    def ask(student: Any, rng: Rng) -> Any:
        x = rng.randn(1, n_tokens, d_in).repeat(200, 1, 1) * 0.3
        plain, module = (make(dropout=p)(student, rng) for p in (0.0, rate))
        output_of(module, x)  # a call in evaluation mode must not end dropout
        inverse = torch.linalg.pinv(_by_head(x[0] @ values(module.state_dict()).T, heads))
        weights, seen = (
            _by_head(output_of(each.train(), x), heads) @ inverse for each in (plain, module)
        )
        _assert_dropped(weights, seen, rate)
        assert_drawn_anew(module, x[:20])
        return True

    return ask


def _assert_dropped(weights: Tensor, seen: Tensor, rate: float) -> None:
    """Raise `Mismatch` unless weights are dropped at the rate, and the rest scaled up."""
    dropped = seen.abs() < weights.abs() / 2
    kept = (weights / (1 - rate)).masked_fill(dropped, 0.0)
    assert_close(seen, kept, "the weights in training", atol=1e-4)
    assert_dropped(dropped[:, weights[0].abs() > 1e-3], rate, "weights")


def pair_dropout_cases(
    check: Check, make: Callable[..., Maker], inputs: Callable[..., list[Recipe]]
) -> None:
    """Add cases to a check of attention between pairs: weights are dropped, each on its own.

    `make(dropout=…, training=True)` is the `built` module. `each_pair_on_its_own` makes the hidden
    case for the part that only decides.

    Example::

        test_pairs = Check("Weights are dropped.", about="training")
        def attention(dropout, training=False):
            return built("Attention", dropout, training=training)
        def sized(batch=2, n_queries=5, n_keys=6, d_value=8):
            sizes = (n_queries, 4), (n_keys, 4), (n_keys, d_value)
            return [drawn(batch, *each) for each in sizes]
        pair_dropout_cases(test_pairs, attention, sized)
    """

    def draw(rng: Rng, **sizes: int) -> list[Tensor]:
        return [recipe(rng) for recipe in inputs(**sizes)]

    def in_training(student: Any, rng: Rng, rate: float) -> Any:
        return make(dropout=rate, training=True)(student, rng)

    @check.case("What dropout makes of weights, where the values are the unit matrix, twice.")
    def factors(student: Any, rng: Rng) -> Any:
        without = make(dropout=0.0)(student, rng)
        attention = in_training(student, rng, 0.4)
        return factors_of_kept_weights(student, attention, without, *draw(rng)[:2])

    @check.case("Which weights of two items are dropped together, over 40 draws.")
    def together(student: Any, rng: Rng) -> Any:
        given = [tensor * 0.5 for tensor in draw(rng, n_queries=3, n_keys=3)]
        return weights_dropped_together(student, in_training(student, rng, 0.5), *given)

    @check.case("Whether about a quarter of the weights are dropped at a rate of 0.25.")
    def share(student: Any, rng: Rng) -> Any:
        attention, given = in_training(student, rng, 0.25), draw(rng, batch=1)[:2]
        with torch.no_grad():
            found = share_of_weights_dropped(student, attention, *given)
        return often(abs(found - 0.25) < 0.03)  # ten standard deviations

    @check.case("Whether the next call drops other weights.")
    def next_call(student: Any, rng: Rng) -> Any:
        return drops_anew(student, in_training(student, rng, 0.4), *draw(rng, batch=12))

    @check.case("Whether weights are dropped with a length for each query, and not in whole rows.")
    def with_lengths(student: Any, rng: Rng) -> Any:
        queries, keys, _ = draw(rng, batch=12)
        n_keys = keys.shape[1]
        eye = torch.eye(n_keys, dtype=torch.float64).repeat(12, 1, 1)
        lens = torch.full(queries.shape[:2], n_keys)
        dropped = in_training(student, rng, 0.3)(queries, keys, eye, lens) == 0
        return often(bool(dropped.any()), bool((dropped.any(-1) > dropped.all(-1)).any()))

    @check.case("A dropout of 0.4 in evaluation mode.", about="options")
    def evaluated(student: Any, rng: Rng) -> Any:
        attention = make(dropout=0.4)(student, rng)
        with seeded(student, 1):
            return attention(*draw(rng))


def each_pair_on_its_own(
    make: Callable[..., Maker], inputs: Sequence[Recipe], lens: list[Any] | None = None
) -> Ask:
    """Return a case: each weight of a pair is dropped on its own, and the next call drops others.

    It decides alone (`tells=False`): it raises if not. `make(dropout=…, training=True)` is the
    `built` module, `inputs` are of one item, with at least as many features in a value as there are
    keys, and so are the lengths.

    Example::

        test_each_pair = Check("Each weight is dropped on its own.", about="training")
        def attention(dropout, training):
            return built("Attention", dropout, training=training)
        one = drawn(1, 3, 4), drawn(1, 5, 4), drawn(1, 5, 9)
        test_each_pair.case("Five keys.", each_pair_on_its_own(attention, one), tells=False)
    """

    def ask(student: Any, rng: Rng) -> Any:
        given = [recipe(rng).repeat(400, 1, 1) for recipe in inputs]
        inverse = torch.linalg.pinv(given[2][0])
        both = [make(dropout=rate, training=True)(student, rng) for rate in (0.0, RATE)]
        more = [] if lens is None else [torch.tensor(lens * 400)]
        weights, seen = (output_of(module, *given, *more) @ inverse for module in both)
        _assert_dropped(weights, seen, RATE)
        assert_drawn_anew(both[1], *given, *more)
        return True

    return ask


def weights_kept(make: Callable[..., Maker], inputs: Callable[..., list[Recipe]]) -> Ask:
    """Return a case: the `attention_weights` of a second call in training mode, before dropout.

    Both calls have a length for each of two items, which is at least 2.

    Example::

        test_weights_kept = Check("attention_weights holds the weights.", about="training")
        def attention(dropout, training):
            return built("Attention", dropout, training=training)
        def pairs():
            return [drawn(2, 3, 4), drawn(2, 5, 4), drawn(2, 5, 6)]
        test_weights_kept.case("The last ones.", weights_kept(attention, pairs))
    """

    def ask(student: Any, rng: Rng) -> Any:
        attention = make(dropout=0.4, training=True)(student, rng)
        first, last = (
            (*(recipe(rng) for recipe in inputs()), torch.tensor(lens)) for lens in ([3, 5], [4, 2])
        )
        return weights_kept_in_training(student, attention, first, last)

    return ask


def kept_weights(target: Maker, *calls: Any) -> Ask:
    """Return a case: the `attention_weights` after some calls, each a list of arguments.

    Example::

        test_kept = Check("attention_weights holds the weights.")
        pairs = [drawn(2, 3, 4), drawn(2, 5, 4), drawn(2, 5, 6)]
        test_kept.case("After one call.", kept_weights(built("Attention", 0.0), pairs))
    """

    def ask(student: Any, rng: Rng) -> Any:
        module = target(student, rng)
        in_turn(lambda *_: module, *calls)(student, rng)
        return {"attention_weights": module.attention_weights.double()}

    return ask


def future_cases(check: Check, make: Callable[..., Maker], d_in: int) -> None:
    """Add cases to a check: later tokens change no earlier output, whatever the scores are.

    `make(dropout=…, training=…)` is the `built` module, with the layers `W_query` and `W_key`.
    Scores of 1e12 in a module of other sizes are left for a hidden case.

    Example::

        test_future = Check("Later tokens change no earlier output.", about="extreme scores")
        def averages(dropout=0.0, training=False):
            return built("Averages", 4, dropout, training=training)
        future_cases(test_future, averages, 4)
    """
    check.case("Inputs of a hundred.", output(make(), drawn(2, 5, d_in, times=100.0)))
    check.case(
        "A last token a thousand times as large as the others.",
        output(
            make(), lambda rng: rng.randn(2, 5, d_in) * 1e3 ** (torch.arange(5) // 4).view(5, 1)
        ),
    )

    @check.case("Which outputs are finite before two opposite tokens, a million times as large.")
    def finite(student: Any, rng: Rng) -> Any:
        module, x = make()(student, rng), rng.randn(2, 5, d_in)
        ordinary = module(x)
        x[:, 3] *= 1e6
        x[:, 4] = -x[:, 3]
        return finite_too(ordinary, module(x))

    @check.case("Scores with the tokens themselves about -1e4, -1e8 and -1e12.")
    def far_below_zero(student: Any, rng: Rng) -> Any:
        module = make()(student, rng)
        opposite = -module.state_dict()["W_query.weight"]
        module.load_state_dict({"W_key.weight": opposite}, strict=False)
        return module(rng.randn(3, 4, d_in) * FAR) / FAR

    @check.case("Which outputs stay, in evaluation and in training, if the last token changes.")
    def unchanged(student: Any, rng: Rng) -> Any:
        x, found = rng.randn(2, 5, d_in), []
        later = x.clone()
        later[:, 4] += 1.0
        for training in (False, True):
            module, pair = make(dropout=0.2, training=training)(student, rng), []
            for each in (x, later):
                with seeded(student, 1):
                    pair.append(module(each)[:, :4])
            found.append((pair[0] - pair[1]).abs() < 1e-6)
        return found


def identity(layer: str, size: int, target: Target) -> Target:
    """Return a maker of the module of `target` in which one layer changes nothing.

    Example::

        test_heads = Check("The heads stand side by side.")
        test_heads.case("Two.", output(identity("gamma", 5, built("Norm", 5)), drawn(2, 5)))
    """
    eye = torch.eye(size, dtype=torch.float64)
    return filled(target, {f"{layer}.weight": eye, f"{layer}.bias": torch.zeros_like(eye[0])})
