"""Probes of attention dropout: what tells its mistakes apart.

Which weights are dropped is chance, and code may draw in its own way. So probes ask for the largest
and smallest results over many draws, in which each weight was both dropped and kept, and for
shares, rounded so that chance does not matter. Draws are spread over calls and over the batch items
of each call: code that draws only once in a call, or the same in each, has many draws as well.
"""

import functools

import torch

from grader.probing import ACCEPTED, Aspect, often, probe, seeded, works_too, written

AXES = ("query", "key")  # of an output, in the singular

EVALUATION = Aspect("evaluation", "the weights in evaluation")
TOGETHER = Aspect("together", "which weights are dropped together")
SHARES = Aspect("shares", "how often a weight is dropped")
LIMITS = Aspect("limits", "a rate of 0 or 1", is_edge=True)


def weights_of(rng, *shape):
    """Return random attention weights, whose rows sum to 1."""
    return torch.softmax(rng.randn(*shape), dim=-1)


def drawn(student, weights, rate, *, calls=20, items=40):
    """Return what is left of copies of the weights, (calls * items, n_queries, n_keys)."""
    with seeded(student, 3):
        copies = weights.repeat(items, 1, 1)
        return torch.cat([student.drop(copies, rate, True) for _ in range(calls)])


def extremes(student, weights, rate, **draws):
    """Return the largest and the smallest result for each weight over many draws."""
    output = drawn(student, weights, rate, **draws)
    return {"largest": output.amax(0), "smallest": output.amin(0)}


@probe("values")
def half(student, rng):
    """The largest and smallest results over 800 draws at rate 0.5."""
    return extremes(student, weights_of(rng, 3, 4), 0.5)


@probe("values")
def few(student, rng):
    """The largest and smallest results over 4,800 draws at rate 0.2."""
    return extremes(student, weights_of(rng, 3, 5), 0.2, calls=40, items=120)


@probe("values")
def most(student, rng):
    """The largest and smallest results over 4,800 draws at rate 0.8."""
    return extremes(student, weights_of(rng, 3, 4), 0.8, calls=40, items=120)


@probe("square")
def square(student, rng):
    """As many queries as keys, at rate 0.5."""
    return extremes(student, weights_of(rng, 4, 4), 0.5)


@probe(SHARES)
def share_at_a_quarter(student, rng):
    """How often each weight is dropped at rate 0.25."""
    return _share(student, rng, 0.25)


@probe(SHARES)
def share_at_three_quarters(student, rng):
    """How often each weight is dropped at rate 0.75."""
    return _share(student, rng, 0.75)


def _share(student, rng, rate):
    dropped = drawn(student, weights_of(rng, 3, 4), rate, calls=60, items=120) == 0
    return (dropped.double().mean(0) * 2 - 2 * rate + 0.5).floor()  # 0 within 0.25 of the rate


@probe(SHARES)
def shares_of_many(student, rng):
    """Whether 20,000 weights in one row are dropped about as often as the rate says."""
    weights = torch.full((20_000,), 1 / 20_000, dtype=torch.float64)
    shares = []
    for rate in (0.07, 0.33, 0.64, 0.96):
        with seeded(student, 3):
            shares.append((student.drop(weights, rate, True) == 0).double().mean() - rate)
    return torch.stack(shares).abs() < 0.02


@probe(TOGETHER)
def with_other_items(student, rng):
    """Whether each weight is both dropped and kept among 200 batch items of one call."""
    dropped = drawn(student, weights_of(rng, 3, 4), 0.5, calls=1, items=200) == 0
    return dropped.any(0) & (~dropped).any(0)


@probe(TOGETHER)
def with_other_queries(student, rng):
    """Whether each key is dropped for one query and kept for another."""
    dropped = drawn(student, weights_of(rng, 3, 12), 0.5) == 0
    return (dropped[:, 0] != dropped[:, 1]).any(0)


@probe(TOGETHER)
def with_other_keys(student, rng):
    """Whether a query's keys are dropped one without the other."""
    dropped = drawn(student, weights_of(rng, 12, 3), 0.5) == 0
    return (dropped[:, :, 0] != dropped[:, :, 1]).any(0)


@probe(TOGETHER)
def number_dropped(student, rng):
    """Whether the number of weights that a row loses differs from draw to draw."""
    lost = (drawn(student, weights_of(rng, 12, 6), 0.5) == 0).sum(-1)
    return [lost.amin(0) != lost.amax(0)]


@probe(TOGETHER)
def number_dropped_of_a_matrix(student, rng):
    """Whether the number of weights that a batch item loses differs from draw to draw."""
    with seeded(student, 4):
        outputs = [student.drop(weights_of(rng, 1, 4, 5), 0.5, True) for _ in range(24)]
    lost = torch.stack([(output == 0).sum() for output in outputs])
    return often((lost != lost[0]).any())


@probe(TOGETHER)
def next_call(student, rng):
    """Whether the next call drops other weights."""
    weights = weights_of(rng, 12, 40)
    with seeded(student, 5):
        first, second = (student.drop(weights, 0.5, True) for _ in range(2))
    return (first != second).any(-1)


@probe(TOGETHER)
def repeated(student, rng):
    """Whether the same weights are dropped after the same `torch.manual_seed`."""
    weights, found = weights_of(rng, 12, 40), []
    for _ in range(2):
        with seeded(student, 5, only_torch=True):
            found.append(student.drop(weights, 0.5, True))
    return often(torch.equal(*found))


@probe(TOGETHER)
def far_apart(student, rng):
    """Whether no weight of 20,000 is dropped whenever one at some distance from it is."""
    weights = torch.full((20_000,), 1 / 20_000, dtype=torch.float64)
    with seeded(student, 3):
        dropped = (student.drop(weights, 0.5, True) == 0).double()
    spectrum = torch.fft.rfft(dropped - dropped.mean(), n=40_000)
    alike = torch.fft.irfft(spectrum.abs() ** 2)[:10_000]  # by distance
    return often(bool(alike[1:].abs().max() < 0.2 * alike[0]))


@probe(EVALUATION)
def evaluation(student, rng):
    """The largest and smallest results over 200 batch items in evaluation at rate 0.5."""
    output = student.drop(weights_of(rng, 3, 4).repeat(200, 1, 1), 0.5, False)
    return {"largest": output.amax(0), "smallest": output.amin(0)}


@probe(EVALUATION)
def evaluation_at_other_rates(student, rng):
    """Evaluation at the rates 0.2 and 0.8."""
    weights = weights_of(rng, 3, 4)
    kept = [student.drop(weights.repeat(200, 1, 1), rate, False) for rate in (0.2, 0.8)]
    return [found for output in kept for found in (output.amax(0), output.amin(0))]


@probe("gradient")
def gradient_in_evaluation(student, rng):
    """The largest and smallest gradients over 400 batch items in evaluation at rate 0.5."""
    return _gradients(student, rng, training=False)


@probe("gradient")
def gradient_in_training(student, rng):
    """The largest and smallest gradients of each weight over 400 draws at rate 0.5."""
    return _gradients(student, rng, training=True)


def _gradients(student, rng, training):
    weights = weights_of(rng, 3, 4).repeat(20, 1, 1)
    given = [weights.clone().requires_grad_() for _ in range(20)]  # for a call each
    with seeded(student, 6):
        output = torch.cat([student.drop(each, 0.5, training) for each in given])
    if not output.requires_grad:
        return {"gradients": "none"}
    output.sum().backward()
    gradients = torch.cat([each.grad for each in given])
    return {"largest": gradients.amax(0), "smallest": gradients.amin(0)}


@probe(TOGETHER)
def number_in_each_call(student, rng):
    """Whether eight calls with twelve weights drop the same number, at each of twelve rates."""
    weights = weights_of(rng, 3, 4)
    with seeded(student, 3):
        counts = [
            {int((student.drop(weights, rate / 20, True) == 0).sum()) for _ in range(8)}
            for rate in range(5, 17)
        ]
    return [len(found) == 1 for found in counts]


@probe(LIMITS)
def nothing(student, rng):
    """Rate 0."""
    return student.drop(weights_of(rng, 3, 4), 0.0, True)


@probe(LIMITS)
def everything(student, rng):
    """Rate 1."""
    output = student.drop(weights_of(rng, 3, 4), 1.0, True)
    return {"output": output, "finite": output.isfinite()}


@probe(LIMITS)
def evaluation_at_rate_one(student, rng):
    """Rate 1 in evaluation."""
    output = student.drop(weights_of(rng, 3, 4), 1.0, False)
    return {"output": output, "finite": output.isfinite()}


@probe(LIMITS)
def gradient_of_nothing(student, rng):
    """Which gradients are finite at rate 1."""
    weights = weights_of(rng, 3, 4).requires_grad_()
    output = student.drop(weights, 1.0, True)
    if not output.requires_grad:
        return torch.ones(3, 4, dtype=torch.bool)
    output.sum().backward()
    return weights.grad.isfinite()


@probe("leading axes")
def one_axis(student, rng):
    """A single row: its largest and smallest weights in evaluation, none below 0 in training."""
    weights = torch.full((400,), 0.0025, dtype=torch.float64)
    evaluated = student.drop(weights, 0.5, False)
    return [evaluated.amax(), evaluated.amin(), student.drop(weights_of(rng, 12), 0.5, True) >= 0]


@probe("leading axes")
def three_axes_more(student, rng):
    """Weights with three leading axes."""
    weights = weights_of(rng, 1, 3, 4).repeat(20, 2, 1, 1)
    output = torch.cat([student.drop(weights, 0.5, True) for _ in range(20)])
    return {"largest": output.amax((0, 1)), "smallest": output.amin((0, 1))}


@probe("leading axes")
def with_other_groups(student, rng):
    """Whether each weight is both dropped and kept among 200 items of four axes."""
    weights = weights_of(rng, 3, 4).repeat(200, 2, 1, 1)
    with seeded(student, 3):
        dropped = student.drop(weights, 0.5, True) == 0
    return dropped.any(0) & (~dropped).any(0)


@probe("views")
def transposed(student, rng):
    """A transposed view, over 400 draws at rate 0.5."""
    weights = weights_of(rng, 3, 4).repeat(20, 1, 1).mT.contiguous().mT
    with seeded(student, 7):
        output = torch.cat([student.drop(weights, 0.5, True) for _ in range(20)])
    return {"largest": output.amax(0), "smallest": output.amin(0)}


@probe("dtype")
def single_precision(student, rng):
    """float32, over 800 draws at rate 0.5."""
    return extremes(student, weights_of(rng, 3, 4).float(), 0.5)


@probe("dtype")
def half_precision(student, rng):
    """bfloat16, over 800 draws at rate 0.5."""
    return extremes(student, weights_of(rng, 3, 4).to(torch.bfloat16), 0.5)


@probe("dtype")
def half_precision_in_evaluation(student, rng):
    """bfloat16 in evaluation, over 400 batch items at rate 0.5."""
    weights = weights_of(rng, 3, 4).to(torch.bfloat16).repeat(400, 1, 1)
    output = student.drop(weights, 0.5, False)
    return {"largest": output.amax(0), "smallest": output.amin(0)}


@probe("writes")
def argument(student, rng):
    """Which weights are others after 300 draws at rate 0.5."""
    weights = weights_of(rng, 3, 4).repeat(300, 1, 1)
    with seeded(student, 8):
        (after,) = written(student, student.drop, weights.clone(), 0.5, True)
    return (after != weights).any(0)


@probe("writes")
def argument_in_evaluation(student, rng):
    """Which weights are others after 300 batch items in evaluation at rate 0.5."""
    weights = weights_of(rng, 3, 4).repeat(300, 1, 1)
    return (written(student, student.drop, weights.clone(), 0.5, False)[0] != weights).any(0)


@probe("refusals")
def too_low(student, rng):
    """A rate of -0.1."""
    student.drop(weights_of(rng, 3, 4), -0.1, True)
    return ACCEPTED


@probe("refusals")
def too_high(student, rng):
    """A rate of 1.1."""
    student.drop(weights_of(rng, 3, 4), 1.1, True)
    return ACCEPTED


@probe("refusals")
def too_high_in_evaluation(student, rng):
    """A rate of 1.1 in evaluation."""
    student.drop(weights_of(rng, 3, 4), 1.1, False)
    return ACCEPTED


@probe("refusals")
def too_low_in_evaluation(student, rng):
    """A rate of -0.1 in evaluation."""
    student.drop(weights_of(rng, 3, 4), -0.1, False)
    return ACCEPTED


@probe("views")
def transposed_works(student, rng):
    """Whether transposed weights work."""
    weights = weights_of(rng, 2, 4, 3).mT
    return works_too(
        lambda: student.drop(weights.contiguous(), 0.5, True),
        lambda: student.drop(weights, 0.5, True),
    )


@probe("leading axes")
def one_key(student, rng):
    """Whether weights of one key that are not dropped are twice as large, at rate 0.5."""
    with seeded(student, 6):
        output = student.drop(torch.ones(200, 1, dtype=torch.float64), 0.5, True)
    return [list(output.shape), output.amax(), output.amin()]


@probe(LIMITS)
def whole_rates(student, rng):
    """The rates 0 and 1 as ints."""
    weights = weights_of(rng, 3, 4)
    return [student.drop(weights, rate, True) for rate in (0, 1)]


@probe(LIMITS)
def limits_work(student, rng):
    """Whether the rates 0 and 1 work."""
    half, *limits = (
        functools.partial(student.drop, weights_of(rng, 3, 4), rate, True)
        for rate in (0.5, 0.0, 1.0)
    )
    return [works_too(half, limit) for limit in limits]


@probe("leading axes")
def with_other_heads(student, rng):
    """Whether each key is dropped in one head and kept in another, in weights of four axes."""
    weights = weights_of(rng, 3, 12).repeat(20, 2, 1, 1)
    with seeded(student, 3):
        dropped = student.drop(weights, 0.5, True) == 0
    return (dropped[:, 0] != dropped[:, 1]).any(0)


@probe(LIMITS)
def nothing_in_half_precision(student, rng):
    """Which of 4,096 weights in bfloat16 are kept at rate 0."""
    weights = torch.full((64, 64), 1 / 64, dtype=torch.bfloat16)
    with seeded(student, 8):
        return (student.drop(weights, 0.0, True) == weights).all(-1)
