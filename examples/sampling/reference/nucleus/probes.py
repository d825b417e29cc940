"""Probes of nucleus filtering: what tells its mistakes apart.

What is filtered is -inf, and a mistake is named only if ten finite numbers of an answer show it. So
most probes also ask which logits are kept. No sum of probabilities lies near p.
"""

import torch

from grader.probing import ACCEPTED, Aspect, gradients, probe, written

AXES = ("row", "token")  # of an output, in the singular
EQUAL = Aspect("equal logits", "rows of equally likely tokens")
LIMITS = Aspect("limits", "a p near 0, and a p of 1", is_edge=True)

SHARES = ((40, 25, 15, 10, 6, 4), (70, 12, 8, 5, 3, 2), (22, 20, 19, 15, 13, 11))


def filtered(student, logits, *levels):
    """Return the outputs for each p, and which logits are kept in them."""
    outputs = [student.nucleus(logits, p) for p in levels]
    return {"output": outputs, "kept": [output.isfinite() for output in outputs]}


def rows(rng, *leading):
    """Return the logits of six tokens (*leading, 6) in random order, with the shares above."""
    count = torch.Size(leading).numel()
    found = [torch.tensor(SHARES[n % 3])[rng.permutation(6)] for n in range(count)]
    logits = (torch.stack(found) / 100.0).double().log()  # (count, 6)
    return (logits + rng.randn(count, 1)).view(*leading, 6)


@probe("values")
def ordinary(student, rng):
    """Half of the probability, and nearly three quarters."""
    return filtered(student, rows(rng, 8), 0.5, 0.73)


@probe("values")
def most(student, rng):
    """Nearly all of the probability."""
    return filtered(student, rows(rng, 9), 0.87, 0.95)


@probe("square")
def square(student, rng):
    """As many rows as tokens."""
    return filtered(student, rows(rng, 6), 0.3, 0.73)


@probe("leading axes")
def three_axes(student, rng):
    """Three axes."""
    return filtered(student, rows(rng, 4, 3), 0.5, 0.87)


@probe("leading axes")
def one_axis(student, rng):
    """One row without leading axes."""
    return filtered(student, rows(rng, 1)[0], 0.3, 0.5, 0.73, 0.87, 0.95)


@probe(EQUAL)
def equal(student, rng):
    """Rows of equally likely tokens."""
    return filtered(student, torch.zeros(2, 7, dtype=torch.float64), 0.2, 0.45, 0.63, 0.81)


@probe("gradient")
def gradient(student, rng):
    """The gradient of the kept logits."""

    def kept(logits):
        output = student.nucleus(logits, 0.73)
        return output.masked_fill(output == -torch.inf, 0.0)

    return gradients(kept, rows(rng, 5))


@probe("extreme scores")
def far(student, rng):
    """Rows whose logits lie a thousand apart."""
    return filtered(student, rows(rng, 6) + 1e3 * torch.arange(6)[:, None], 0.5, 0.73)


@probe("extreme scores")
def too_large(student, rng):
    """Which rows keep a token if their logits rise from 20 to 20,000."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64)[:, None]
    return student.nucleus(rows(rng, 24) + levels, 0.73).isfinite().any(dim=-1)


@probe(LIMITS)
def tiny(student, rng):
    """A p of a thousandth."""
    return filtered(student, rows(rng, 12), 0.001)


@probe(LIMITS)
def all_tokens(student, rng):
    """A p of 1."""
    return filtered(student, rows(rng, 4), 1.0)


@probe(LIMITS)
def all_unlikely_tokens(student, rng):
    """A p of 1 where most tokens have almost no probability."""
    return filtered(student, rows(rng, 6) * 200, 1.0)


@probe("views")
def transposed(student, rng):
    """A transposed view."""
    return filtered(student, rows(rng, 7).T.contiguous().T, 0.73)


@probe("dtype")
def single_precision(student, rng):
    """Logits in float32."""
    return filtered(student, rows(rng, 5).float(), 0.73)


@probe("dtype")
def half_precision(student, rng):
    """Logits in bfloat16, of which one or two hold nearly all of the probability."""
    logits = (rng.permutation(36).bfloat16() - 18).view(6, 6) * 2
    return filtered(student, logits, 0.97)


@probe("writes")
def argument(student, rng):
    """Which logits are others after a call."""
    logits = rows(rng, 8)
    return written(student, student.nucleus, logits.clone(), 0.5)[0] != logits


@probe("refusals")
def zero(student, rng):
    """A p of 0."""
    student.nucleus(rows(rng, 2), 0.0)
    return ACCEPTED


@probe("refusals")
def negative(student, rng):
    """A p below 0."""
    student.nucleus(rows(rng, 2), -0.1)
    return ACCEPTED


@probe("refusals")
def above_one(student, rng):
    """A p above 1."""
    student.nucleus(rows(rng, 2), 1.5)
    return ACCEPTED
