"""Probes of the Transformer block: what tells its mistakes apart."""

import torch

from grader.probing import (
    build,
    gradients,
    often,
    probe,
    seeded,
    works_too,
    works_when_new,
    written,
)

AXES = ("batch item", "token", "feature")  # of an output, in the singular

D_MODEL, HEADS, D_FF, CONTEXT = 6, 3, 5, 7


def block(student, rng, *, dtype=torch.float64, **options):
    """Return a block of the usual sizes."""
    made = student.TransformerBlock
    return build(made, D_MODEL, HEADS, D_FF, CONTEXT, rng=rng, dtype=dtype, **options)


def changed(student, module, x):
    """Return which numbers of x differ after a call, 1 or 0, whatever is written there."""
    return (written(student, module, x.clone())[0] != x).double()


@probe("values")
def ordinary(student, rng):
    """Pre-norm."""
    return block(student, rng)(rng.randn(2, 4, D_MODEL))


@probe("values")
def full_context(student, rng):
    """Pre-norm at the full context."""
    return block(student, rng)(rng.randn(3, CONTEXT, D_MODEL))


@probe("options")
def full_context_works(student, rng):
    """Whether as many tokens work as the context is long."""
    module, x = block(student, rng), rng.randn(2, CONTEXT, D_MODEL)
    return works_too(lambda: module(x[:, :-1]), lambda: module(x))


@probe("square")
def square(student, rng):
    """All sizes equal."""
    module = build(student.TransformerBlock, 4, 4, 4, 4, rng=rng)
    return module(rng.randn(4, 4, 4))


@probe("post-norm")
def post_norm(student, rng):
    """Post-norm."""
    return block(student, rng, norm_first=False)(rng.randn(2, 4, D_MODEL))


@probe("post-norm")
def post_norm_full(student, rng):
    """Post-norm at the full context."""
    module = block(student, rng, norm_first=False)
    return module(rng.randn(3, CONTEXT, D_MODEL))


@probe("options")
def not_causal(student, rng):
    """Pre-norm without the causal mask."""
    return block(student, rng, causal=False)(rng.randn(2, 4, D_MODEL))


@probe("options")
def post_norm_not_causal(student, rng):
    """Post-norm without the causal mask."""
    module = block(student, rng, norm_first=False, causal=False)
    return module(rng.randn(2, 4, D_MODEL))


@probe("options")
def chosen_order(student, rng):
    """Pre-norm with norm_first=True."""
    return block(student, rng, norm_first=True)(rng.randn(2, 4, D_MODEL))


@probe("options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with dropout rates of 0.4 and of 1."""
    some, one = (block(student, rng, dropout=rate) for rate in (0.4, 1.0))
    with seeded(student, 3):
        return [some(rng.randn(2, 4, D_MODEL)), one(rng.randn(2, 4, D_MODEL))]


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    module = block(student, rng)
    return {name: list(each.shape) for name, each in module.named_parameters()}


@probe("layers")
def values_of_parameters(student, rng):
    """The parameters under their names, filled with numbers."""
    return dict(block(student, rng).named_parameters())


@probe("layers")
def saved(student, rng):
    """How many names of the state_dict belong to no part of the block."""
    parts = ("attention.", "feed_forward.", "norm1.", "norm2.")
    names = student.TransformerBlock(D_MODEL, HEADS, D_FF, CONTEXT).state_dict()
    return often(float(sum(not name.startswith(parts) for name in names)))


@probe("gradient")
def gradient(student, rng):
    """The gradients, pre-norm."""
    return gradients(block(student, rng), rng.randn(2, 4, D_MODEL))


@probe("gradient")
def gradient_post_norm(student, rng):
    """The gradients, post-norm."""
    return gradients(block(student, rng, norm_first=False), rng.randn(2, 4, D_MODEL))


@probe("training")
def training(student, rng):
    """Training mode without dropout."""
    return block(student, rng).train()(rng.randn(2, 4, D_MODEL))


@probe("training", decides=False)
def dropped(student, rng):
    """Training mode with dropout of a quarter."""
    module = block(student, rng, dropout=0.25).train()
    with seeded(student, 5):
        return module(rng.randn(2, 4, D_MODEL))


@probe("training", decides=False)
def dropped_post_norm(student, rng):
    """Post-norm in training with dropout of a half."""
    module = block(student, rng, dropout=0.5, norm_first=False).train()
    with seeded(student, 6):
        return module(rng.randn(2, 4, D_MODEL))


@probe("training")
def dropped_all(student, rng):
    """Training mode with dropout of 1."""
    module = block(student, rng, dropout=1.0).train()
    return module(rng.randn(2, 4, D_MODEL))


@probe("extreme scores")
def large(student, rng):
    """Inputs of a thousand."""
    return block(student, rng)(rng.randn(2, 4, D_MODEL) * 1e3)


@probe("single")
def one_token(student, rng):
    """One token."""
    return block(student, rng)(rng.randn(2, 1, D_MODEL))


@probe("single")
def one_item(student, rng):
    """One sentence, pre-norm and post-norm."""
    x = rng.randn(1, 4, D_MODEL)
    return [block(student, rng, norm_first=first)(x) for first in (True, False)]


@probe("views")
def transposed(student, rng):
    """x is a transposed view."""
    return block(student, rng)(rng.randn(4, 2, D_MODEL).transpose(0, 1))


@probe("dtype")
def single_precision(student, rng):
    """float32."""
    module = block(student, rng, dtype=torch.float32)
    return module(rng.randn(2, 4, D_MODEL, dtype=torch.float32))


@probe("dtype")
def half_precision(student, rng):
    """bfloat16."""
    module = block(student, rng, dtype=torch.bfloat16)
    return module(rng.randn(2, 4, D_MODEL, dtype=torch.bfloat16))


@probe("writes")
def argument(student, rng):
    """x after the call."""
    return changed(student, block(student, rng), rng.randn(2, 4, D_MODEL))


@probe("writes")
def argument_in_post_norm(student, rng):
    """x after the call, post-norm."""
    return changed(student, block(student, rng, norm_first=False), rng.randn(2, 4, D_MODEL))


@probe("writes")
def argument_without_gradients(student, rng):
    """x after a call without gradients."""
    module = block(student, rng)
    with torch.no_grad():
        return changed(student, module, rng.randn(2, 4, D_MODEL))


@probe("refusals")
def too_long(student, rng):
    """One token more than the context is long."""
    return block(student, rng)(rng.randn(2, CONTEXT + 1, D_MODEL))


@probe("views")
def transposed_works(student, rng):
    """Whether a transposed x works."""
    module, x = block(student, rng), rng.randn(4, 2, D_MODEL).transpose(0, 1)
    return works_too(lambda: module(x.contiguous()), lambda: module(x))


@probe("dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    made, sizes = student.TransformerBlock, (D_MODEL, HEADS, D_FF, CONTEXT)
    return works_when_new(block(student, rng), lambda: made(*sizes), rng.randn(2, 4, D_MODEL))


@probe("training")
def dropped_all_post_norm(student, rng):
    """Post-norm in training mode with dropout of 1."""
    module = block(student, rng, dropout=1.0, norm_first=False).train()
    return module(rng.randn(2, 4, D_MODEL))
