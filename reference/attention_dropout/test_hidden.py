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
SHARES = Aspect("shares", "how often a weight is dropped")
DROP, BFLOAT16 = "drop", torch.bfloat16
DRAWS = {"calls": 40, "items": 120}  # enough for a rare combination
LONG = torch.full((20_000,), 1 / 20_000, dtype=torch.float64)  # one long row


def weights_of(*shape):
    """Return the recipe of random attention weights, whose rows sum to 1."""
    return lambda rng: torch.softmax(rng.randn(*shape), dim=-1)


def draws(question, *shape, rate=0.5, training=True, calls=20, items=40, change=None):
    """Return a case: a question about what is left of weights in many draws, (draws, *shape)."""

    def ask(student, rng):
        weights = weights_of(*shape)(rng)
        copies = weights.repeat(items, *[1] * len(shape))
        copies = change(copies) if change else copies
        with seeded(student, 3):
            found = [student.drop(copies, rate, training) for _ in range(calls)]
        return question(torch.cat(found).view(calls * items, *shape))

    return ask


def extremes(left):
    """Return the largest and the smallest number that is left of each weight."""
    return {"largest": left.amax(0), "smallest": left.amin(0)}


def both(left):
    """Return which weights are dropped in some draws, and kept in others."""
    return (left == 0).any(0) & (left != 0).any(0)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The dropping is written by hand, without torch's dropout."""
    weights = weights_of(2, 3, 5)(rng)
    calls = [functools.partial(student.drop, weights, 0.5, mode) for mode in (True, False)]
    assert_written_by_hand(student, *calls)


test_kept_weights = Check(
    "In training, each weight is 0 or weight / (1 - rate), in any shape.", points=2
)
kept = test_kept_weights.case
kept("Rate 0.5.", draws(extremes, 3, 4))
kept("Rate 0.2.", draws(extremes, 3, 5, rate=0.2, **DRAWS))
kept("Rate 0.8.", draws(extremes, 3, 4, rate=0.8, **DRAWS))
kept("As many queries as keys, at rate 0.5.", draws(extremes, 4, 4), about="square")
kept("Weights with three leading axes.", draws(extremes, 2, 3, 4), about="leading axes")


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
            weights = weights_of(*shape)(rng)
            left = student.drop(weights, rate, True)
            found.append((left == 0) | ((left - weights / (1 - rate)).abs() < 1e-5))
    return found


test_each_on_its_own = Check(
    "Each weight is dropped on its own, as often as the rate says, and anew in each call.",
    points=2,
    about=Aspect("together", "which weights are dropped together"),
)
together = test_each_on_its_own.case
for rate in (0.25, 0.75):
    # whether the share of each weight is within 0.25 of the rate
    near = lambda left, rate=rate: ((left == 0).double().mean(0) * 2 - 2 * rate + 0.5).floor()  # noqa: E731
    share = draws(near, 3, 4, rate=rate, calls=60, items=120)
    together(f"How often each weight is dropped at rate {rate}.", share, about=SHARES)
together("Which are both dropped and kept in one call.", draws(both, 3, 4, calls=1, items=200))
together(
    "Which keys are dropped for one query and kept for another.",
    draws(lambda left: ((left[:, 0] == 0) != (left[:, 1] == 0)).any(0), 3, 12),
)
together(
    "Which queries lose one of their first keys without the other.",
    draws(lambda left: ((left[..., 0] == 0) != (left[..., 1] == 0)).any(0), 12, 3),
)
together(
    "Whether the number of weights that a row loses differs from draw to draw.",
    draws(lambda left: (left == 0).sum(-1).amin(0) != (left == 0).sum(-1).amax(0), 12, 6),
)
together(
    "Which keys are dropped in one head and kept in another.",
    draws(lambda left: ((left[:, 0] == 0) != (left[:, 1] == 0)).any(0), 2, 3, 12, calls=1),
    about="leading axes",
)
expand = lambda copies: copies[:1].expand(200, 3, 4)  # noqa: E731
view = draws(both, 3, 4, calls=1, items=200, change=expand)
together(
    "Which are both dropped and kept among 200 copies in an expanded view.", view, about="views"
)


@together(about=SHARES)
def shares_of_many(student, rng):
    """Whether 20,000 weights in one row are dropped about as often as the rate says."""
    shares = []
    for rate in (0.07, 0.33, 0.64, 0.96):
        with seeded(student, 3):
            shares.append((student.drop(LONG, rate, True) == 0).double().mean() - rate)
    return torch.stack(shares).abs() < 0.02


@together
def number_dropped_of_a_matrix(student, rng):
    """Whether the number of weights that a batch item loses differs from draw to draw."""
    with seeded(student, 4):
        outputs = [student.drop(weights_of(1, 4, 5)(rng), 0.5, True) for _ in range(24)]
    lost = torch.stack([(each == 0).sum() for each in outputs])
    return often((lost != lost[0]).any())


@together
def number_in_each_call(student, rng):
    """Whether eight calls with twelve weights drop the same number, at each of twelve rates."""
    weights = weights_of(3, 4)(rng)
    with seeded(student, 3):
        counts = [
            {int((student.drop(weights, rate / 20, True) == 0).sum()) for _ in range(8)}
            for rate in range(5, 17)
        ]
    return [len(found) == 1 for found in counts]


@together
def next_call(student, rng):
    """Whether the next call drops others, and whether the same after `torch.manual_seed`."""
    weights, found = weights_of(12, 40)(rng), []
    for _ in range(2):
        with seeded(student, 5, only_torch=True):
            found.append(student.drop(weights, 0.5, True))
    later = student.drop(weights, 0.5, True)
    return {"next": (later != found[1]).any(-1), "again": often(torch.equal(*found))}


@together
def far_apart(student, rng):
    """Whether no weight of 20,000 is dropped whenever one at some distance from it is."""
    with seeded(student, 3):
        dropped = (student.drop(LONG, 0.5, True) == 0).double()
    spectrum = torch.fft.rfft(dropped - dropped.mean(), n=40_000)
    alike = torch.fft.irfft(spectrum.abs() ** 2)[:10_000]  # by distance
    return often(bool(alike[1:].abs().max() < 0.2 * alike[0]))


@together(tells=False, hidden=True)
def on_its_own(student, rng):
    """Whether weights of several shapes are dropped at the rate, each on its own."""
    for shape, rate in (((3, 5), 0.3), ((2, 2, 3), 0.7), ((6,), 0.5)):
        dropped = student.drop(weights_of(400, *shape)(rng), rate, True) == 0
        assert_dropped(dropped, rate, "weights")
    few = weights_of(1, 3, 4)(rng)
    left = torch.cat([student.drop(few, 0.5, True) for _ in range(200)])
    assert_dropped(left == 0, 0.5, "weights, in calls with one batch item each,")


test_nothing_dropped_in_evaluation = Check(
    "If training is False, the result equals the weights, whatever the rate is.",
    about=Aspect("evaluation", "the weights in evaluation"),
)
evaluation = test_nothing_dropped_in_evaluation.case
for rate in (0.5, 0.2, 0.8):
    ask = draws(extremes, 3, 4, rate=rate, calls=1, items=200, training=False)
    evaluation(f"Evaluation at rate {rate}, over 200 batch items.", ask)
evaluation("Evaluation at rate 1.", output(DROP, weights_of(3, 4), 1.0, False), about=LIMITS)


@evaluation(about="leading axes")
def one_axis(student, rng):
    """A single row: its largest and smallest weights in evaluation, none below 0 in training."""
    evaluated = student.drop(LONG[:400], 0.5, False)
    return [evaluated.amax(), evaluated.amin(), student.drop(weights_of(12)(rng), 0.5, True) >= 0]


some = output(DROP, weights_of(3, 2, 1, 4), 0.6, False)
evaluation("Four axes in evaluation at rate 0.6.", some, hidden=True, tells=False)
for rate in (0.0, 1):
    evaluation(
        f"Four axes in evaluation at rate {rate}.",
        output(DROP, weights_of(3, 2, 1, 4), rate, False),
        hidden=True,
        about=LIMITS,
    )


test_limits_of_the_rate = Check(
    "Rate 0 drops nothing, rate 1 gives zeros and finite gradients, and others are refused.",
    about=LIMITS,
)
limits = test_limits_of_the_rate.case
for rate in (0.0, 1.0, 0, 1):
    limits(f"Rate {rate} in training.", output(DROP, weights_of(3, 4), rate, True))
for rate in (0.0, 1.0):
    limits(
        f"Twenty batch items at rate {rate:g}.",
        output(DROP, weights_of(20, 3, 5), rate, True),
        hidden=True,
    )


@limits
def gradient_of_nothing(student, rng):
    """Which gradients are finite at rate 1."""
    weights = weights_of(3, 4)(rng).requires_grad_()
    found = student.drop(weights, 1.0, True)
    if not found.requires_grad:
        return torch.ones(3, 4, dtype=torch.bool)
    found.sum().backward()
    return weights.grad.isfinite()


@limits
def limits_work(student, rng):
    """Whether the rates 0 and 1 work."""
    half, *others = (
        functools.partial(student.drop, weights_of(3, 4)(rng), rate, True)
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
        ask = refused(DROP, weights_of(3, 4), rate, training)
        limits(f"A rate of {rate} in {mode}.", ask, about="refusals")


test_gradients = Check(
    "Gradients reach the weights that are kept, and are those of what the code computes.",
    about="gradient",
)
slopes = test_gradients.case


def gradients(*shape, training=True, rate=0.5):
    """Return a case: the largest and smallest gradients of each weight over 400 draws."""

    def ask(student, rng):
        given = [weights_of(*shape)(rng).repeat(20, 1, 1).requires_grad_() for _ in range(20)]
        with seeded(student, 6):
            found = torch.cat([student.drop(each, rate, training) for each in given])
        if not found.requires_grad:
            return {"gradients": "none"}
        found.sum().backward()
        return extremes(torch.cat([each.grad for each in given]))

    return ask


slopes("The largest and smallest gradients over 400 draws in training.", gradients(3, 4))
slopes("The largest and smallest gradients in evaluation.", gradients(3, 4, training=False))
sentence = "The largest and smallest gradients at rate 0.2."
slopes(sentence, gradients(2, 7, rate=0.2), hidden=True)


@slopes
def gradients_of_kept_weights(student, rng):
    """Which weights get a gradient just if they are kept."""
    weights = weights_of(12, 5)(rng).requires_grad_()
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
tensors("float32.", draws(extremes, 3, 4, change=torch.Tensor.float))
for name, dtype in (("bfloat16", BFLOAT16), ("float16", torch.float16)):
    for mode, training in (("", True), (" in evaluation", False)):
        change = functools.partial(torch.Tensor.to, dtype=dtype)
        tensors(f"{name}{mode}.", draws(extremes, 3, 4, change=change, training=training))
turn = lambda weights: weights.mT.contiguous().mT  # noqa: E731
tensors(
    "Rows without a leading axis in bfloat16.",
    draws(extremes, 4, change=torch.Tensor.bfloat16),
    hidden=True,
)
tensors("A transposed view.", draws(extremes, 3, 4, change=turn), about="views")


@tensors(about="views")
def transposed_works(student, rng):
    """Whether transposed weights work."""
    weights = weights_of(2, 4, 3)(rng).mT
    return works_too(
        lambda: student.drop(weights.contiguous(), 0.5, True),
        lambda: student.drop(weights, 0.5, True),
    )


@tensors(tells=False, hidden=True)
def left_of_views(student, rng):
    """Which weights are right of a transposed view, one of leading axes, and an expanded one."""
    weights, found = weights_of(2, 3, 5)(rng), []
    swapped = weights.transpose(0, 1).contiguous().transpose(0, 1)
    for view in (turn(weights), swapped, weights[:, :1].expand(2, 3, 5), turn(weights[0])):
        for training in (True, False):
            left = student.drop(view, 0.5, training)
            found.append((left == 0) | ((left - view * (1 + training)).abs() < 1e-5))
    return found


for rate, mode, training in (
    (0.5, "training", True),
    (0.5, "evaluation", False),
    (0.0, "training", True),
    (1.0, "training", True),
    (1.0, "evaluation", False),
):

    def changed(student, rng, rate=rate, training=training):
        weights = weights_of(3, 4)(rng).repeat(300, 1, 1)
        with seeded(student, 8):
            (after,) = written(student, student.drop, weights.clone(), rate, training)
        return (after != weights).any(0)

    about = "writes" if rate == 0.5 else LIMITS
    tensors(
        f"Which weights are others after a call in {mode} at rate {rate}.", changed, about=about
    )


@tensors(about="writes", hidden=True)
def two_axes_afterwards(student, rng):
    """Which columns of a single matrix are others after a call in training."""
    weights = weights_of(300, 4)(rng)
    (after,) = written(student, student.drop, weights.clone(), 0.5, True)
    return (after != weights).any(0)


@tensors(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""
    for training in (True, False):

        def called(batch=2, n_queries=3, n_keys=5, training=training):
            fresh = weights_of(batch, n_queries, n_keys)(rng)
            given = fresh, fresh[0], fresh[:, None]
            return lambda: [student.drop(each, 0.5, training) for each in given]

        grown = {"batch items": {"batch": (9, 19)}, "queries": {"n_queries": (13, 27)}}
        assert_vectorised(student, called, {**grown, "keys": {"n_keys": (17, 35)}})
