"""The checks of attention dropout and their cases.

Which weights are dropped is chance, and code may draw in its own way. So cases ask for the largest
and smallest results over many draws, in which each weight was both dropped and kept, and for
shares, rounded so that chance does not matter. Draws are spread over calls and over the batch items
of each call: code that draws only once in a call, or the same in each, has many draws as well.
"""

import functools

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    often,
    output,
    refused,
    seeded,
    works_too,
    written,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("query", "key")
LIMITS = Aspect("limits", "a rate of 0 or 1", is_edge=True)
DROP, BFLOAT16 = "drop", torch.bfloat16


def weights_of(rng, *shape):
    """Return random attention weights, whose rows sum to 1."""
    return torch.softmax(rng.randn(*shape), dim=-1)


def many_draws(student, weights, rate=0.5, *, calls=20, items=40, training=True):
    """Return what is left of copies of the weights, (calls * items, n_queries, n_keys)."""
    copies = weights.repeat(items, 1, 1)
    with seeded(student, 3):
        return torch.cat([student.drop(copies, rate, training) for _ in range(calls)])


def extremes(*shape, rate=0.5, change=lambda weights: weights, **draws):
    """Return a case: the largest and the smallest result for each weight over many draws."""

    def ask(student, rng):
        found = many_draws(student, change(weights_of(rng, *shape)), rate, **draws)
        return {"largest": found.amax(0), "smallest": found.amin(0)}

    return ask


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The dropping is written by hand, without torch's dropout."""
    weights = weights_of(rng, 2, 3, 5)
    assert_written_by_hand(
        student,
        lambda: student.drop(weights, 0.5, True),
        lambda: student.drop(weights, 0.5, False),
    )


test_kept_weights = Check("In training, each weight is 0 or weight / (1 - rate), in any shape.")
kept = test_kept_weights.case
MANY_DRAWS = {"calls": 40, "items": 120}
kept("Rate 0.5.", extremes(3, 4))
kept("Rate 0.2.", extremes(3, 5, rate=0.2, **MANY_DRAWS))
kept("Rate 0.8.", extremes(3, 4, rate=0.8, **MANY_DRAWS))
kept("As many queries as keys, at rate 0.5.", extremes(4, 4), about="square")


@kept(about="leading axes")
def three_axes_more(student, rng):
    """Weights with three leading axes."""
    weights = weights_of(rng, 1, 3, 4).repeat(20, 2, 1, 1)
    found = torch.cat([student.drop(weights, 0.5, True) for _ in range(20)])
    return {"largest": found.amax((0, 1)), "smallest": found.amin((0, 1))}


@kept(about="leading axes")
def one_key(student, rng):
    """Whether weights of one key that are not dropped are twice as large, at rate 0.5."""
    with seeded(student, 6):
        found = student.drop(torch.ones(200, 1, dtype=torch.float64), 0.5, True)
    return [list(found.shape), found.amax(), found.amin()]


@kept(tells=False, hidden=True)
def any_shape(student, rng):
    """Which weights of several shapes are 0 or weight / (1 - rate)."""
    found = []
    for shape in ((7,), (40, 5), (3, 4, 6), (2, 3, 4, 5), (9, 1), (1, 8), (30, 1, 1)):
        for rate in (0.5, 0.2, 0.75, 0.05):
            weights = weights_of(rng, *shape)
            left = student.drop(weights, rate, True)
            found.append((left == 0) | ((left - weights / (1 - rate)).abs() < 1e-5))
    return found


test_each_on_its_own = Check(
    "Each weight is dropped on its own, as often as the rate says, and anew in each call.",
    about=Aspect("together", "which weights are dropped together"),
)
together = test_each_on_its_own.case
SHARES = Aspect("shares", "how often a weight is dropped")


def share(student, rng, rate):
    """Return whether the share of dropped draws of each weight is within 0.25 of the rate."""
    dropped = many_draws(student, weights_of(rng, 3, 4), rate, calls=60, items=120) == 0
    return (dropped.double().mean(0) * 2 - 2 * rate + 0.5).floor()


for rate in (0.25, 0.75):
    ask = functools.partial(share, rate=rate)
    together(f"How often each weight is dropped at rate {rate}.", ask, about=SHARES)


@together(about=SHARES)
def shares_of_many(student, rng):
    """Whether 20,000 weights in one row are dropped about as often as the rate says."""
    weights, shares = torch.full((20_000,), 1 / 20_000, dtype=torch.float64), []
    for rate in (0.07, 0.33, 0.64, 0.96):
        with seeded(student, 3):
            shares.append((student.drop(weights, rate, True) == 0).double().mean() - rate)
    return torch.stack(shares).abs() < 0.02


@together
def with_other_items(student, rng):
    """Whether each weight is both dropped and kept among 200 batch items of one call."""
    dropped = many_draws(student, weights_of(rng, 3, 4), calls=1, items=200) == 0
    return dropped.any(0) & (~dropped).any(0)


@together
def with_other_queries(student, rng):
    """Whether each key is dropped for one query and kept for another."""
    dropped = many_draws(student, weights_of(rng, 3, 12)) == 0
    return (dropped[:, 0] != dropped[:, 1]).any(0)


@together
def with_other_keys(student, rng):
    """Whether a query's keys are dropped one without the other."""
    dropped = many_draws(student, weights_of(rng, 12, 3)) == 0
    return (dropped[:, :, 0] != dropped[:, :, 1]).any(0)


@together
def number_dropped(student, rng):
    """Whether the number of weights that a row loses differs from draw to draw."""
    lost = (many_draws(student, weights_of(rng, 12, 6)) == 0).sum(-1)
    return [lost.amin(0) != lost.amax(0)]


@together
def number_dropped_of_a_matrix(student, rng):
    """Whether the number of weights that a batch item loses differs from draw to draw."""
    with seeded(student, 4):
        outputs = [student.drop(weights_of(rng, 1, 4, 5), 0.5, True) for _ in range(24)]
    lost = torch.stack([(each == 0).sum() for each in outputs])
    return often((lost != lost[0]).any())


@together
def number_in_each_call(student, rng):
    """Whether eight calls with twelve weights drop the same number, at each of twelve rates."""
    weights = weights_of(rng, 3, 4)
    with seeded(student, 3):
        counts = [
            {int((student.drop(weights, rate / 20, True) == 0).sum()) for _ in range(8)}
            for rate in range(5, 17)
        ]
    return [len(found) == 1 for found in counts]


@together
def next_call(student, rng):
    """Whether the next call drops other weights."""
    weights = weights_of(rng, 12, 40)
    with seeded(student, 5):
        first, second = (student.drop(weights, 0.5, True) for _ in range(2))
    return (first != second).any(-1)


@together
def repeated(student, rng):
    """Whether the same weights are dropped after the same `torch.manual_seed`."""
    weights, found = weights_of(rng, 12, 40), []
    for _ in range(2):
        with seeded(student, 5, only_torch=True):
            found.append(student.drop(weights, 0.5, True))
    return often(torch.equal(*found))


@together
def far_apart(student, rng):
    """Whether no weight of 20,000 is dropped whenever one at some distance from it is."""
    weights = torch.full((20_000,), 1 / 20_000, dtype=torch.float64)
    with seeded(student, 3):
        dropped = (student.drop(weights, 0.5, True) == 0).double()
    spectrum = torch.fft.rfft(dropped - dropped.mean(), n=40_000)
    alike = torch.fft.irfft(spectrum.abs() ** 2)[:10_000]  # by distance
    return often(bool(alike[1:].abs().max() < 0.2 * alike[0]))


@together(about="views")
def with_other_copies(student, rng):
    """Whether each weight is both dropped and kept among 200 copies in an expanded view."""
    with seeded(student, 3):
        dropped = student.drop(weights_of(rng, 1, 3, 4).expand(200, 3, 4), 0.5, True) == 0
    return dropped.any(0) & (~dropped).any(0)


@together(about="leading axes")
def with_other_groups(student, rng):
    """Whether each weight is both dropped and kept among 200 items of four axes."""
    with seeded(student, 3):
        dropped = student.drop(weights_of(rng, 3, 4).repeat(200, 2, 1, 1), 0.5, True) == 0
    return dropped.any(0) & (~dropped).any(0)


@together(about="leading axes")
def with_other_heads(student, rng):
    """Whether each key is dropped in one head and kept in another, in weights of four axes."""
    with seeded(student, 3):
        dropped = student.drop(weights_of(rng, 3, 12).repeat(20, 2, 1, 1), 0.5, True) == 0
    return (dropped[:, 0] != dropped[:, 1]).any(0)


@together(tells=False, hidden=True)
def on_its_own(student, rng):
    """Whether weights of several shapes are dropped at the rate, each on its own."""
    for shape, rate in (((3, 5), 0.3), ((2, 2, 3), 0.7), ((6,), 0.5)):
        dropped = student.drop(weights_of(rng, 400, *shape), rate, True) == 0
        assert_dropped(dropped, rate, "weights")
    few = weights_of(rng, 1, 3, 4)
    draws = torch.cat([student.drop(few, 0.5, True) for _ in range(200)])
    assert_dropped(draws == 0, 0.5, "weights, in calls with one batch item each,")


test_nothing_dropped_in_evaluation = Check(
    "If training is False, the result equals the weights, whatever the rate is.",
    about=Aspect("evaluation", "the weights in evaluation"),
)
evaluation = test_nothing_dropped_in_evaluation.case
for rate in (0.5, 0.2, 0.8):
    ask = extremes(3, 4, rate=rate, calls=1, items=200, training=False)
    evaluation(f"Evaluation at rate {rate}, over 200 batch items.", ask)
evaluation(
    "Evaluation at rate 1.",
    output(DROP, lambda rng: weights_of(rng, 3, 4), 1.0, False),
    about=LIMITS,
)


@evaluation(about="leading axes")
def one_axis(student, rng):
    """A single row: its largest and smallest weights in evaluation, none below 0 in training."""
    evaluated = student.drop(torch.full((400,), 0.0025, dtype=torch.float64), 0.5, False)
    trained = student.drop(weights_of(rng, 12), 0.5, True)
    return [evaluated.amax(), evaluated.amin(), trained >= 0]


for rate in (0.0, 0.6, 1):
    row = output(DROP, lambda rng: weights_of(rng, 3, 2, 1, 4), rate, False)
    sentence, is_limit = f"Four axes in evaluation at rate {rate}.", rate != 0.6
    evaluation(sentence, row, hidden=True, about=LIMITS if is_limit else "", tells=is_limit)


test_limits_of_the_rate = Check(
    "Rate 0 drops nothing, rate 1 gives zeros and finite gradients, and others are refused.",
    about=LIMITS,
)
limits = test_limits_of_the_rate.case
for rate in (0.0, 1.0, 0, 1):
    kind = "" if isinstance(rate, float) else " as an int"
    ask = output(DROP, lambda rng: weights_of(rng, 3, 4), rate, True)
    limits(f"Rate {rate:g}{kind}.", ask)
for rate in (0.0, 1.0):
    ask = output(DROP, lambda rng: weights_of(rng, 20, 3, 5), rate, True)
    limits(f"Twenty batch items at rate {rate:g}.", ask, hidden=True)


@limits
def gradient_of_nothing(student, rng):
    """Which gradients are finite at rate 1."""
    weights = weights_of(rng, 3, 4).requires_grad_()
    found = student.drop(weights, 1.0, True)
    if not found.requires_grad:
        return torch.ones(3, 4, dtype=torch.bool)
    found.sum().backward()
    return weights.grad.isfinite()


@limits
def limits_work(student, rng):
    """Whether the rates 0 and 1 work."""
    half, *others = (
        functools.partial(student.drop, weights_of(rng, 3, 4), rate, True)
        for rate in (0.5, 0.0, 1.0)
    )
    return [works_too(half, other) for other in others]


@limits
def nothing_in_half_precision(student, rng):
    """Which of 4,096 weights in bfloat16 are kept at rate 0."""
    weights = torch.full((64, 64), 1 / 64, dtype=BFLOAT16)
    with seeded(student, 8):
        return (student.drop(weights, 0.0, True) == weights).all(-1)


for rate in (-0.1, 1.1, -1, 2, -1e-7, 1.0000001):
    for mode, training in (("training", True), ("evaluation", False)):
        ask = refused(DROP, lambda rng: weights_of(rng, 3, 4), rate, training)
        limits(f"A rate of {rate} in {mode}.", ask, about="refusals")


test_gradients = Check(
    "Gradients reach the weights that are kept, and are those of what the code computes.",
    about="gradient",
)
slopes = test_gradients.case


def gradients(student, rng, *, training, rate=0.5, shape=(3, 4)):
    """Return the largest and smallest gradients of each weight over 400 draws."""
    given = [weights_of(rng, *shape).repeat(20, 1, 1).requires_grad_() for _ in range(20)]
    with seeded(student, 6):
        found = torch.cat([student.drop(each, rate, training) for each in given])
    if not found.requires_grad:
        return {"gradients": "none"}
    found.sum().backward()
    grads = torch.cat([each.grad for each in given])
    return {"largest": grads.amax(0), "smallest": grads.amin(0)}


for mode, training in (("training", True), ("evaluation", False)):
    ask = functools.partial(gradients, training=training)
    slopes(f"The largest and smallest gradients over 400 draws in {mode} at rate 0.5.", ask)
slopes(
    "The largest and smallest gradients over 400 draws at rate 0.2.",
    functools.partial(gradients, training=True, rate=0.2, shape=(2, 7)),
    hidden=True,
)


@slopes
def gradients_of_kept_weights(student, rng):
    """Which weights get a gradient just if they are kept."""
    weights = weights_of(rng, 12, 5).requires_grad_()
    found = student.drop(weights, 0.5, True)
    if not found.requires_grad:
        return "none"
    found.sum().backward()
    return (weights.grad != 0) == (found != 0)


test_tensors = Check(
    "The dtype is kept, views work, nothing is modified, and no Python loop runs over an axis.",
    about="dtype",
)
tensors = test_tensors.case
tensors("float32.", extremes(3, 4, change=torch.Tensor.float))
for name, dtype in (("bfloat16", BFLOAT16), ("float16", torch.float16)):
    for mode, training in (("", True), (" in evaluation", False)):
        change = functools.partial(torch.Tensor.to, dtype=dtype)
        tensors(f"{name}{mode}.", extremes(3, 4, change=change, training=training))


@tensors(about="views")
def transposed(student, rng):
    """A transposed view: its largest and smallest results over 400 draws at rate 0.5."""
    view = weights_of(rng, 3, 4).repeat(20, 1, 1).mT.contiguous().mT
    with seeded(student, 7):
        found = torch.cat([student.drop(view, 0.5, True) for _ in range(20)])
    return {"largest": found.amax(0), "smallest": found.amin(0)}


@tensors(about="views")
def transposed_works(student, rng):
    """Whether transposed weights work."""
    weights = weights_of(rng, 2, 4, 3).mT
    return works_too(
        lambda: student.drop(weights.contiguous(), 0.5, True),
        lambda: student.drop(weights, 0.5, True),
    )


for sentence, change in (
    ("a transposed view", lambda weights: weights.mT.contiguous().mT),
    (
        "a view whose leading axes are swapped",
        lambda w: w.transpose(0, 1).contiguous().transpose(0, 1),
    ),
    ("an expanded view", lambda weights: weights[:, :1].expand(2, 3, 5)),
):

    def left_of_view(student, rng, change=change):
        found = []
        for training in (True, False):
            view = change(weights_of(rng, 2, 3, 5))
            left = student.drop(view, 0.5, training)
            found.append((left == 0) | ((left - view * (1 + training)).abs() < 1e-5))
        return found

    tensors(f"Which weights of {sentence} are right.", left_of_view, tells=False, hidden=True)


def argument(student, rng, *, rate=0.5, training=True):
    """Return which weights are others after 300 draws."""
    weights = weights_of(rng, 3, 4).repeat(300, 1, 1)
    with seeded(student, 8):
        (after,) = written(student, student.drop, weights.clone(), rate, training)
    return (after != weights).any(0)


for rate, mode, training in (
    (0.5, "training", True),
    (0.5, "evaluation", False),
    (0.0, "training", True),
    (1.0, "training", True),
    (1.0, "evaluation", False),
):
    ask = functools.partial(argument, rate=rate, training=training)
    about = "writes" if rate == 0.5 else LIMITS
    tensors(f"Which weights are others after 300 draws in {mode} at rate {rate}.", ask, about=about)


@tensors(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""
    for training in (True, False):

        def called(batch=2, n_queries=3, n_keys=5, training=training):
            fresh = weights_of(rng, batch, n_queries, n_keys)
            return functools.partial(student.drop, fresh, 0.5, training)

        grown = {"batch items": {"batch": (9, 19)}, "queries": {"n_queries": (13, 27)}}
        assert_vectorised(student, called, {**grown, "keys": {"n_keys": (17, 35)}})
