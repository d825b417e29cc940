"""Probes of cross-entropy: what tells its mistakes apart.

One loss is a single number, and a mistake is named only if ten numbers of an answer show it. So
most probes ask for the losses of a dozen batches.
"""

import torch

from grader.probing import ACCEPTED, Aspect, gradients, probe, written

AXES = ("class",)  # of an output, in the singular
LEFT_OUT = Aspect("left out", "batches with ignored positions")
NOTHING = Aspect("nothing", "batches in which no position counts", is_edge=True)

BATCHES = 12
IGNORED = -100


def drawn(rng, *shape):
    """Return random logits of a shape, and a right class for each position."""
    return rng.randn(*shape), rng.randint(0, shape[-1], *shape[:-1])


def with_ignored(targets, index=IGNORED):
    """Return targets of which every third is ignored, from the second on."""
    places = torch.arange(targets.numel()).view(targets.shape)
    return targets.masked_fill(places % 3 == 1, index)


def losses(student, rng, *shape, index=IGNORED, scale=1.0, ignored=True):
    """Return the losses of a dozen batches of a shape."""
    batches = [drawn(rng, *shape) for _ in range(BATCHES)]
    chosen = [with_ignored(targets, index) if ignored else targets for _, targets in batches]
    return [
        student.cross_entropy(logits * scale, targets, index)
        for (logits, _), targets in zip(batches, chosen)
    ]


@probe("values")
def ordinary(student, rng):
    """Several sentences, and every position counts."""
    return losses(student, rng, 2, 3, 5, ignored=False)


@probe("values")
def one_axis(student, rng):
    """A row of positions."""
    return losses(student, rng, 4, 7, ignored=False)


@probe("square")
def square(student, rng):
    """As many sentences as tokens and classes."""
    return losses(student, rng, 3, 3, 3, ignored=False)


@probe("leading axes")
def no_axis(student, rng):
    """A single position without leading axes."""
    return losses(student, rng, 6, ignored=False)


@probe("leading axes")
def three_axes(student, rng):
    """Three leading axes."""
    return losses(student, rng, 2, 3, 4, 5, ignored=False)


@probe(LEFT_OUT)
def some_ignored(student, rng):
    """Every third position is ignored."""
    return losses(student, rng, 2, 5, 4)


@probe(LEFT_OUT)
def another_index(student, rng):
    """The ignore_index is -1."""
    return losses(student, rng, 2, 5, 4, index=-1)


@probe(LEFT_OUT)
def index_of_a_class(student, rng):
    """The ignore_index is that of a class."""
    return losses(student, rng, 2, 5, 4, index=1)


@probe("gradient")
def gradient(student, rng):
    """The gradient of the logits."""
    return gradients(student.cross_entropy, *drawn(rng, 2, 3, 5))


@probe("gradient")
def gradient_of_ignored(student, rng):
    """The gradient of the logits where some positions are ignored."""
    logits, targets = drawn(rng, 2, 4, 5)
    return gradients(student.cross_entropy, logits, with_ignored(targets))


@probe(NOTHING)
def all_ignored(student, rng):
    """Which losses are nan if every position is ignored."""
    found = [student.cross_entropy(rng.randn(2, 5), torch.tensor([IGNORED] * 2)) for _ in range(12)]
    return [loss.isnan() for loss in found]


@probe("extreme scores")
def too_large(student, rng):
    """Which losses are finite if the logits rise from 20 to 20,000."""
    logits, targets = drawn(rng, 3, 5)
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64)
    return [student.cross_entropy(logits + level, targets).isfinite() for level in levels]


@probe("extreme scores")
def too_low(student, rng):
    """Which losses are finite if the logits fall from -20 to -20,000."""
    logits, targets = drawn(rng, 3, 5)
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64)
    return [student.cross_entropy(logits - level, targets).isfinite() for level in levels]


@probe("extreme scores")
def unlikely(student, rng):
    """Logits a hundred times as large."""
    return losses(student, rng, 2, 3, 5, scale=100.0, ignored=False)


@probe("views")
def transposed(student, rng):
    """Both arguments are transposed views."""
    logits, targets = drawn(rng, 3, 2, 5)
    return student.cross_entropy(logits.transpose(0, 1), targets.T)


@probe("dtype")
def single_precision(student, rng):
    """Logits in float32."""
    logits, targets = drawn(rng, 2, 3, 5)
    return student.cross_entropy(logits.float(), with_ignored(targets))


@probe("dtype", decides=False)
def half_precision(student, rng):
    """Logits in bfloat16."""
    logits, targets = drawn(rng, 2, 3, 5)
    return student.cross_entropy(logits.bfloat16(), with_ignored(targets))


@probe("writes")
def argument(student, rng):
    """Which numbers of the arguments are others after a call."""
    logits, targets = drawn(rng, 3, 4, 5)
    targets = with_ignored(targets)
    given = [logits.clone(), targets.clone()]
    after = written(student, student.cross_entropy, *given)
    return [new != old for new, old in zip(after, (logits, targets))]


@probe("refusals")
def negative(student, rng):
    """A target of -1 that is not the ignore_index."""
    student.cross_entropy(rng.randn(3, 5), torch.tensor([2, -1, 0]))
    return ACCEPTED


@probe("refusals")
def too_high(student, rng):
    """A target that is the number of classes."""
    student.cross_entropy(rng.randn(3, 5), torch.tensor([2, 5, 0]))
    return ACCEPTED


@probe("refusals")
def too_few(student, rng):
    """One target for several positions."""
    student.cross_entropy(rng.randn(3, 5), torch.tensor([2]))
    return ACCEPTED


@probe("refusals")
def one_column(student, rng):
    """Targets with an axis of size 1 at the end."""
    student.cross_entropy(rng.randn(3, 5), torch.tensor([[2], [1], [0]]))
    return ACCEPTED
