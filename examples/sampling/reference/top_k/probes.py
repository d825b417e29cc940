"""Probes of top-k: what tells its mistakes apart.

What is filtered is -inf, and a mistake is named only if ten finite numbers of an answer show it. So
most probes also ask which logits are kept.
"""

import torch

from grader.probing import ACCEPTED, Aspect, gradients, probe, written

AXES = ("row", "token")  # of an output, in the singular
EQUAL = Aspect("equal logits", "rows with equal logits")
LIMITS = Aspect("limits", "a k of all tokens or more", is_edge=True)


def filtered(student, logits, k):
    """Return the output, and which logits are kept in it."""
    output = student.top_k(logits, k)
    return {"output": output, "kept": output.isfinite()}


def spread(rng, *shape):
    """Return logits of a shape in random order, of which no two are close."""
    count = torch.Size(shape).numel()
    return (rng.permutation(count) - count // 2).double().view(shape) / 2


@probe("values")
def ordinary(student, rng):
    """Three of nine logits."""
    return filtered(student, rng.randn(6, 9), 3)


@probe("values")
def few(student, rng):
    """The largest of seven logits."""
    return filtered(student, rng.randn(8, 7), 1)


@probe("square")
def square(student, rng):
    """As many rows as tokens."""
    return filtered(student, rng.randn(6, 6), 2)


@probe("leading axes")
def three_axes(student, rng):
    """Three axes."""
    return filtered(student, rng.randn(2, 3, 8), 3)


@probe("leading axes")
def one_axis(student, rng):
    """One row without leading axes."""
    return filtered(student, rng.randn(24), 11)


@probe(EQUAL)
def equal(student, rng):
    """Rows with equal logits."""
    return filtered(student, rng.randint(0, 3, 8, 7).double(), 3)


@probe("values")
def all_but_one(student, rng):
    """A k of one less than all."""
    return filtered(student, rng.randn(12, 5), 4)


@probe("gradient")
def gradient(student, rng):
    """The gradient of the kept logits."""

    def kept(logits):
        output = student.top_k(logits, 3)
        return output.masked_fill(output == -torch.inf, 0.0)

    return gradients(kept, spread(rng, 5, 7))


@probe("extreme scores")
def low(student, rng):
    """Logits far below 0."""
    return filtered(student, spread(rng, 5, 7) - 1e4, 3)


@probe("extreme scores")
def masked(student, rng):
    """Rows of which every second logit is -inf."""
    logits = spread(rng, 6, 8)
    logits[:, ::2] = -torch.inf
    return filtered(student, logits, 5)


@probe(LIMITS)
def too_large(student, rng):
    """A k that is larger than the vocabulary."""
    return filtered(student, spread(rng, 5, 4), 9)


@probe(LIMITS)
def all_of_them(student, rng):
    """A k of all tokens."""
    return filtered(student, spread(rng, 5, 4), 4)


@probe("views")
def transposed(student, rng):
    """A transposed view."""
    return filtered(student, spread(rng, 7, 5).T, 3)


@probe("dtype")
def single_precision(student, rng):
    """Logits in float32."""
    return filtered(student, spread(rng, 5, 7).float(), 3)


@probe("dtype")
def half_precision(student, rng):
    """Logits in bfloat16."""
    return filtered(student, spread(rng, 5, 7).bfloat16(), 3)


@probe("writes")
def argument(student, rng):
    """Which logits are others after a call."""
    logits = spread(rng, 6, 7)
    return written(student, student.top_k, logits.clone(), 3)[0] != logits


@probe("refusals")
def zero(student, rng):
    """A k of 0."""
    student.top_k(rng.randn(2, 5), 0)
    return ACCEPTED


@probe("refusals")
def negative(student, rng):
    """A k of -2."""
    student.top_k(rng.randn(2, 5), -2)
    return ACCEPTED
