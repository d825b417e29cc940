"""Probes of causal attention: what tells its mistakes apart."""

import torch

from grader.probing import build, gradients, probe, seeded, written

AXES = ("batch item", "token", "feature")  # of an output, in the singular

D_IN, D_OUT, CONTEXT = 3, 4, 6


@probe("values")
def ordinary(student, rng):
    """Fewer tokens than the context is long."""
    return build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng)(rng.randn(2, 5, D_IN))


@probe("values")
def full_context(student, rng):
    """As many tokens as the context is long."""
    return build(student.CausalAttention, 5, 3, 4, 0.0, rng=rng)(rng.randn(3, 4, 5))


@probe("values")
def narrow(student, rng):
    """Fewer output than input features."""
    return build(student.CausalAttention, 7, 2, 9, 0.0, rng=rng)(rng.randn(2, 6, 7) * 0.5)


@probe("square")
def square(student, rng):
    """Batch, tokens and features of one size."""
    return build(student.CausalAttention, 4, 4, 4, 0.0, rng=rng)(rng.randn(4, 4, 4))


@probe("options")
def biases(student, rng):
    """Layers with biases."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, True, rng=rng)
    return attention(rng.randn(2, 5, D_IN))


@probe("options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.4, rng=rng)
    with seeded(student, 3):
        return attention(rng.randn(2, 5, D_IN))


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng)
    return {name: list(each.shape) for name, each in attention.named_parameters()}


@probe("layers")
def parameters_with_biases(student, rng):
    """The shapes of the parameters with biases."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, True, rng=rng)
    return {name: list(each.shape) for name, each in attention.named_parameters()}


@probe("gradient")
def gradient(student, rng):
    """The gradients of the input and of the parameters."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng)
    return gradients(attention, rng.randn(2, 5, D_IN))


@probe("training")
def training(student, rng):
    """Training mode without dropout."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng).train()
    return attention(rng.randn(2, 5, D_IN))


@probe("training")
def dropped(student, rng):
    """Training mode with dropout of a quarter."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.25, rng=rng).train()
    with seeded(student, 5):
        return attention(rng.randn(2, 5, D_IN))


@probe("training")
def dropped_more(student, rng):
    """Training mode with dropout of two thirds."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 2 / 3, rng=rng).train()
    with seeded(student, 6):
        return attention(rng.randn(3, 6, D_IN))


@probe("extreme scores")
def large(student, rng):
    """Inputs of a hundred."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng)
    return attention(rng.randn(2, 5, D_IN) * 100)


@probe("extreme scores")
def towering_future(student, rng):
    """A last token a thousand times as large as the others."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng)
    x = rng.randn(2, 5, D_IN)
    x[:, -1] *= 1e3
    return attention(x)


@probe("single")
def one_token(student, rng):
    """One token."""
    attention = build(student.CausalAttention, D_IN, 12, CONTEXT, 0.0, rng=rng)
    return attention(rng.randn(2, 1, D_IN))


@probe("single")
def one_item(student, rng):
    """One sentence."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng)
    return attention(rng.randn(1, 5, D_IN))


@probe("views")
def transposed(student, rng):
    """x is a transposed view."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng)
    return attention(rng.randn(5, 2, D_IN).transpose(0, 1))


@probe("dtype")
def single_precision(student, rng):
    """A module and an input in float32."""
    attention = build(
        student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng, dtype=torch.float32
    )
    return attention(rng.randn(2, 5, D_IN, dtype=torch.float32))


@probe("dtype")
def half_precision(student, rng):
    """A module and an input in bfloat16."""
    attention = build(
        student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng, dtype=torch.bfloat16
    )
    return attention(rng.randn(2, 5, D_IN, dtype=torch.bfloat16))


@probe("writes")
def argument(student, rng):
    """x after the call."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng)
    return written(student, attention, rng.randn(2, 5, D_IN))


@probe("refusals")
def too_long(student, rng):
    """One token more than the context is long."""
    attention = build(student.CausalAttention, D_IN, D_OUT, CONTEXT, 0.0, rng=rng)
    return attention(rng.randn(2, CONTEXT + 1, D_IN))
