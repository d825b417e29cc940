"""Probes of multi-head attention: what tells its mistakes apart."""

import torch

from grader.probing import build, gradients, probe, seeded, written

AXES = ("batch item", "token", "feature")  # of an output, in the singular

D_IN, D_OUT, CONTEXT, HEADS = 5, 12, 6, 3


def attention(student, rng, *, dropout=0.0, heads=HEADS, dtype=torch.float64, **options):
    """Return a module of the usual sizes."""
    made = student.MultiHeadAttention
    return build(made, D_IN, D_OUT, CONTEXT, dropout, heads, rng=rng, dtype=dtype, **options)


@probe("values")
def ordinary(student, rng):
    """Fewer tokens than the context is long."""
    return attention(student, rng)(rng.randn(2, 4, D_IN))


@probe("values")
def full_context(student, rng):
    """As many tokens as the context is long."""
    return attention(student, rng)(rng.randn(3, CONTEXT, D_IN))


@probe("values")
def four_heads(student, rng):
    """Four heads of three features."""
    return attention(student, rng, heads=4)(rng.randn(2, 5, D_IN))


@probe("square")
def square(student, rng):
    """Batch, tokens and heads of one size."""
    module = build(student.MultiHeadAttention, 4, 16, 4, 0.0, 4, rng=rng)
    return module(rng.randn(4, 4, 4))


@probe("options")
def not_causal(student, rng):
    """Without the causal mask."""
    return attention(student, rng, causal=False)(rng.randn(2, 4, D_IN))


@probe("options")
def biases(student, rng):
    """Layers with biases."""
    return attention(student, rng, qkv_bias=True)(rng.randn(2, 4, D_IN))


@probe("options")
def not_causal_with_biases(student, rng):
    """Biases, without the causal mask."""
    module = attention(student, rng, qkv_bias=True, causal=False)
    return module(rng.randn(2, 4, D_IN))


@probe("options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate."""
    module = attention(student, rng, dropout=0.4)
    with seeded(student, 3):
        return module(rng.randn(2, 4, D_IN))


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    module = attention(student, rng)
    return {name: list(each.shape) for name, each in module.named_parameters()}


@probe("layers")
def parameters_with_biases(student, rng):
    """The shapes of the parameters with biases."""
    module = attention(student, rng, qkv_bias=True)
    return {name: list(each.shape) for name, each in module.named_parameters()}


@probe("gradient")
def gradient(student, rng):
    """The gradients of the input and of the parameters."""
    return gradients(attention(student, rng), rng.randn(2, 4, D_IN))


@probe("gradient")
def gradient_not_causal(student, rng):
    """The gradients without the causal mask."""
    return gradients(attention(student, rng, causal=False), rng.randn(2, 4, D_IN))


@probe("training")
def training(student, rng):
    """Training mode without dropout."""
    return attention(student, rng).train()(rng.randn(2, 4, D_IN))


@probe("training")
def dropped(student, rng):
    """Training mode with dropout of a quarter."""
    module = attention(student, rng, dropout=0.25).train()
    with seeded(student, 5):
        return module(rng.randn(2, 4, D_IN))


@probe("training")
def dropped_more(student, rng):
    """Training mode with dropout of two thirds, without the causal mask."""
    module = attention(student, rng, dropout=2 / 3, causal=False).train()
    with seeded(student, 6):
        return module(rng.randn(3, 6, D_IN))


@probe("extreme scores")
def large(student, rng):
    """Inputs of a hundred."""
    return attention(student, rng)(rng.randn(2, 4, D_IN) * 100)


@probe("extreme scores")
def towering_future(student, rng):
    """A last token a thousand times as large as the others."""
    module, x = attention(student, rng), rng.randn(2, 4, D_IN)
    x[:, -1] *= 1e3
    return module(x)


@probe("single")
def one_token(student, rng):
    """One token."""
    return attention(student, rng)(rng.randn(2, 1, D_IN))


@probe("single")
def one_item(student, rng):
    """One sentence."""
    return attention(student, rng)(rng.randn(1, 4, D_IN))


@probe("single")
def one_head(student, rng):
    """One head."""
    return attention(student, rng, heads=1)(rng.randn(2, 4, D_IN))


@probe("single")
def heads_of_one(student, rng):
    """Heads of size 1."""
    return attention(student, rng, heads=D_OUT)(rng.randn(2, 4, D_IN))


@probe("views")
def transposed(student, rng):
    """x is a transposed view."""
    return attention(student, rng)(rng.randn(4, 2, D_IN).transpose(0, 1))


@probe("dtype")
def single_precision(student, rng):
    """float32."""
    module = attention(student, rng, dtype=torch.float32)
    return module(rng.randn(2, 4, D_IN, dtype=torch.float32))


@probe("dtype")
def half_precision(student, rng):
    """bfloat16."""
    module = attention(student, rng, dtype=torch.bfloat16)
    return module(rng.randn(2, 4, D_IN, dtype=torch.bfloat16))


@probe("writes")
def argument(student, rng):
    """x after the call."""
    return written(student, attention(student, rng), rng.randn(2, 4, D_IN))


@probe("refusals")
def too_long(student, rng):
    """One token more than the context is long."""
    return attention(student, rng)(rng.randn(2, CONTEXT + 1, D_IN))


@probe("refusals")
def too_long_not_causal(student, rng):
    """One token too many, without the causal mask."""
    module = attention(student, rng, causal=False)
    return module(rng.randn(2, CONTEXT + 1, D_IN))


@probe("refusals")
def heads_do_not_divide(student, rng):
    """Five heads for twelve features."""
    module = attention(student, rng, heads=5)
    return module(rng.randn(2, 4, D_IN))
