"""Probes of multi-head attention: what tells its mistakes apart."""

import torch

from grader.probing import (
    build,
    dropped_weights,
    extremes,
    finite_too,
    gradients,
    often,
    probe,
    seeded,
    share_of_zeros,
    works_elsewhere,
    works_too,
    works_when_new,
    written,
)

AXES = ("batch item", "token", "feature")  # of an output, in the singular

D_IN, D_OUT, CONTEXT, HEADS = 5, 12, 6, 3
LAYERS = ("W_query", "W_key", "W_value", "out_proj")
FLOAT64 = torch.float64


def attention(student, rng, *, dropout=0.0, heads=HEADS, d_out=D_OUT, dtype=FLOAT64, **options):
    """Return a module in evaluation mode, whose layers have random parameters.

    Parameters that the exercise does not ask for stay as they are.
    """
    sizes = D_IN, d_out, CONTEXT, dropout, heads
    made = student.MultiHeadAttention
    return build(made, *sizes, rng=rng, dtype=dtype, layers=LAYERS, **options)


def gradients_of(module, x):
    """Return the output and its gradients; none at all counts as zero."""
    found = gradients(module, x)
    for name, parameter in module.named_parameters():
        if name.partition(".")[0] not in LAYERS:
            found.pop(f"parameter {name}", None)
        elif found.get(f"parameter {name}", x) is None:
            found[f"parameter {name}"] = torch.zeros_like(parameter)
    return found


def shapes_of(module):
    """Return the shapes of the parameters: of the four layers by name, and of others."""
    shapes = {name: list(each.shape) for name, each in module.named_parameters()}
    others = [shapes.pop(name) for name in list(shapes) if name.partition(".")[0] not in LAYERS]
    return {**shapes, "others": sorted(others)}


def without_out_proj(module, size=D_OUT):
    """Return a module after its out_proj was made to change nothing."""
    identity = torch.eye(size, dtype=FLOAT64)
    state = {"out_proj.weight": identity, "out_proj.bias": torch.zeros_like(identity[0])}
    module.load_state_dict(state, strict=False)
    return module


@probe("values")
def ordinary(student, rng):
    """Fewer tokens than the context is long."""
    return attention(student, rng)(rng.randn(2, 4, D_IN))


@probe("values")
def full_context(student, rng):
    """As many tokens as the context is long."""
    return attention(student, rng)(rng.randn(4, CONTEXT, D_IN))


@probe("values")
def four_heads(student, rng):
    """Four heads of three features."""
    return attention(student, rng, heads=4)(rng.randn(2, 5, D_IN))


@probe("square")
def square(student, rng):
    """Batch, tokens and heads of one size."""
    return attention(student, rng, heads=4, d_out=16)(rng.randn(4, 4, D_IN))


@probe("options")
def not_causal(student, rng):
    """Without the causal mask."""
    return attention(student, rng, causal=False)(rng.randn(2, 4, D_IN))


@probe("options")
def causal(student, rng):
    """With the causal mask by name."""
    return attention(student, rng, causal=True)(rng.randn(2, 4, D_IN))


@probe("options")
def biases(student, rng):
    """Layers with biases."""
    return attention(student, rng, qkv_bias=True)(rng.randn(2, 4, D_IN))


@probe("options")
def not_causal_with_biases(student, rng):
    """Biases, without the causal mask."""
    return attention(student, rng, qkv_bias=True, causal=False)(rng.randn(2, 4, D_IN))


@probe("options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate of a half, one head, and with a rate of 1."""
    module = without_out_proj(attention(student, rng, heads=1, dropout=0.5))
    found = extremes(student, module, rng.randn(1, 3, D_IN), two_keys=module)
    return found | {"rate 1": attention(student, rng, dropout=1.0)(rng.randn(2, 4, D_IN))}


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    return shapes_of(attention(student, rng))


@probe("layers")
def parameters_with_biases(student, rng):
    """The shapes of the parameters with biases."""
    return shapes_of(attention(student, rng, qkv_bias=True))


@probe("gradient")
def gradient(student, rng):
    """The gradients of the input and of the parameters."""
    return gradients_of(attention(student, rng), rng.randn(2, 4, D_IN))


@probe("gradient")
def gradient_not_causal(student, rng):
    """The gradients without the causal mask, in training mode."""
    return gradients_of(attention(student, rng, causal=False).train(), rng.randn(2, 4, D_IN))


@probe("training")
def training(student, rng):
    """Training mode without dropout."""
    return attention(student, rng).train()(rng.randn(2, 4, D_IN))


@probe("training", decides=False)
def dropped(student, rng):
    """Training mode with dropout of a half, one head."""
    module = without_out_proj(attention(student, rng, heads=1, dropout=0.5)).train()
    return extremes(student, module, rng.randn(1, 4, D_IN), two_keys=module)


@probe("training", decides=False)
def dropped_less(student, rng):
    """Training mode with a dropout of 0.3, one head, without the causal mask."""
    causal, module = (
        without_out_proj(attention(student, rng, heads=1, dropout=0.3, causal=causal)).train()
        for causal in (True, False)
    )
    return extremes(student, module, rng.randn(1, 3, D_IN), two_keys=causal)


@probe("training")
def weights_dropped(student, rng):
    """Which weights of two sentences and heads are dropped together, over 40 draws."""
    made = attention(student, rng, heads=2, d_out=8, dropout=0.5)
    module, x = without_out_proj(made, 8).train(), rng.randn(1, 3, D_IN).repeat(2, 1, 1) * 0.5
    values = (x @ module.state_dict()["W_value.weight"].T).unflatten(2, (2, 4))
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)]).unflatten(3, (2, 4))
    visible = torch.ones(3, 3).tril().bool()
    return dropped_weights(outputs.transpose(2, 3), values.transpose(1, 2), visible)


@probe("training")
def share_dropped(student, rng):
    """How often the value of a first token is dropped at a rate of 0.3, one head."""
    module = without_out_proj(attention(student, rng, heads=1, dropout=0.3)).train()
    return share_of_zeros(student, lambda x: module(x)[:, 0], rng.randn(1, 2, D_IN))


@probe("extreme scores")
def large(student, rng):
    """Inputs of a hundred."""
    return attention(student, rng)(rng.randn(2, 4, D_IN) * 100)


@probe("extreme scores")
def token_of_zeros(student, rng):
    """A token of zeros, whose scores are all 0."""
    x = rng.randn(2, 5, D_IN)
    x[:, 2] = 0.0
    return attention(student, rng)(x)


@probe("extreme scores")
def towering_future(student, rng):
    """A last token a thousand times as large as the others."""
    module, x = attention(student, rng), rng.randn(2, 4, D_IN)
    x[:, -1] *= 1e3
    return module(x)


@probe("extreme scores")
def finite_before_huge_tokens(student, rng):
    """Which outputs are finite before two opposite tokens, a million times as large."""
    module, x = attention(student, rng), rng.randn(2, 5, D_IN)
    ordinary = module(x)
    x[:, 3] *= 1e6
    x[:, 4] = -x[:, 3]
    return finite_too(ordinary, module(x))


@probe("extreme scores")
def far_below_zero(student, rng):
    """Scores with the tokens themselves about -1e4, -1e8 and -1e12."""
    module = without_out_proj(attention(student, rng))
    W_query = rng.randn(D_OUT, D_IN)
    module.load_state_dict({"W_query.weight": W_query, "W_key.weight": -W_query}, strict=False)
    scales = torch.tensor([1e2, 1e4, 1e6], dtype=FLOAT64).view(3, 1, 1)
    return module(rng.randn(3, 4, D_IN) * scales) / scales


@probe("single")
def one_token(student, rng):
    """One token, and one with a context of one."""
    x, sizes = rng.randn(2, 1, D_IN), (D_IN, D_OUT, 1, 0.0, HEADS)
    short = build(student.MultiHeadAttention, *sizes, rng=rng, layers=LAYERS)
    return [attention(student, rng)(x), short(x)]


@probe("single")
def one_item(student, rng):
    """One sentence."""
    return attention(student, rng)(rng.randn(1, 4, D_IN))


@probe("single")
def one_token_alone(student, rng):
    """One sentence of one token."""
    return attention(student, rng)(rng.randn(1, 1, D_IN))


@probe("single")
def one_head(student, rng):
    """One head, with fewer features than the context is long."""
    return attention(student, rng, heads=1, d_out=3)(rng.randn(2, 4, D_IN))


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
    """A module and an input in float32."""
    module = attention(student, rng, dtype=torch.float32)
    return module(rng.randn(2, 4, D_IN, dtype=torch.float32))


@probe("dtype")
def half_precision(student, rng):
    """A module and an input in bfloat16."""
    module = attention(student, rng, dtype=torch.bfloat16)
    return module(rng.randn(2, 4, D_IN, dtype=torch.bfloat16))


@probe("writes")
def argument(student, rng):
    """x after the call."""
    return written(student, attention(student, rng), rng.randn(2, 4, D_IN))


@probe("refusals")
def too_long(student, rng):
    """One token more than the context is long."""
    output = attention(student, rng)(rng.randn(2, CONTEXT + 1, D_IN))
    return torch.ones_like(output)  # the values would show other mistakes


@probe("refusals")
def too_long_not_causal(student, rng):
    """One token too many, without the causal mask."""
    output = attention(student, rng, causal=False)(rng.randn(2, CONTEXT + 1, D_IN))
    return torch.ones_like(output)


@probe("refusals")
def heads_do_not_divide(student, rng):
    """Five heads for twelve features."""
    return shapes_of(student.MultiHeadAttention(D_IN, 12, CONTEXT, 0.0, 5, qkv_bias=True))


@probe("views")
def transposed_works(student, rng):
    """Whether a transposed x works."""
    module, x = attention(student, rng), rng.randn(5, 2, D_IN).transpose(0, 1)
    return works_too(lambda: module(x.contiguous()), lambda: module(x))


@probe("values")
def fewer_tokens_work(student, rng):
    """Whether fewer tokens work than the context is long."""
    module, x = attention(student, rng), rng.randn(2, CONTEXT, D_IN)
    return works_too(lambda: module(x), lambda: module(x[:, :-1]))


@probe("values")
def full_context_works(student, rng):
    """Whether as many tokens work as the context is long."""
    module, x = attention(student, rng), rng.randn(2, CONTEXT, D_IN)
    return works_too(lambda: module(x[:, :-1]), lambda: module(x))


@probe("layers")
def parameters_by_place(student, rng):
    """The shapes of the parameters with biases that are asked for by place."""
    return shapes_of(student.MultiHeadAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS, True))


@probe("refusals")
def two_tokens_where_one_is_the_most(student, rng):
    """Two tokens with a context of one."""
    sizes = D_IN, D_OUT, 1, 0.0, HEADS
    module = build(student.MultiHeadAttention, *sizes, rng=rng, layers=LAYERS)
    return torch.ones_like(module(rng.randn(2, 2, D_IN)))


@probe("dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    module, x = attention(student, rng), rng.randn(2, 4, D_IN)
    return works_when_new(
        module, lambda: student.MultiHeadAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS), x
    )


@probe("refusals")
def more_heads_than_features(student, rng):
    """Eight heads for four features."""
    return shapes_of(student.MultiHeadAttention(D_IN, 4, CONTEXT, 0.0, 8, qkv_bias=True))


@probe("gradient")
def reached_in_training(student, rng):
    """Which parameters get gradients in training mode with dropout of a half."""
    module, x = attention(student, rng, dropout=0.5).train(), rng.randn(8, 4, D_IN)
    with seeded(student, 10):
        found = gradients_of(module, x)
    return {name: often(torch.is_tensor(g) and bool((g != 0).any())) for name, g in found.items()}


@probe("devices")
def moved(student, rng):
    """Whether a new module works after a move to another device."""
    return works_elsewhere(
        lambda: student.MultiHeadAttention(D_IN, D_OUT, CONTEXT, 0.5, HEADS),
        rng.randn(2, 4, D_IN).float(),
    )
