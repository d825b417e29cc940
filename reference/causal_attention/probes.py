"""Probes of causal attention: what tells its mistakes apart."""

import torch

from grader.probing import (
    build,
    dropped_weights,
    extremes,
    finite_too,
    gradients,
    probe,
    seeded,
    share_of_zeros,
    works_elsewhere,
    works_too,
    works_when_new,
    written,
)

AXES = ("batch item", "token", "feature")  # of an output, in the singular

D_IN, D_OUT, CONTEXT = 3, 6, 7
LAYERS = ("W_query", "W_key", "W_value")
FLOAT64 = torch.float64


def attention(student, rng, *options, dropout=0.0, dtype=FLOAT64, sizes=(D_IN, D_OUT, CONTEXT)):
    """Return a module in evaluation mode, whose layers have random parameters.

    Parameters that the exercise does not ask for stay as they are.
    """
    return build(
        student.CausalAttention, *sizes, dropout, *options, rng=rng, dtype=dtype, layers=LAYERS
    )


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
    """Return the shapes of the parameters: of the three layers by name, and of others."""
    shapes = {name: list(each.shape) for name, each in module.named_parameters()}
    others = [shapes.pop(name) for name in list(shapes) if name.partition(".")[0] not in LAYERS]
    return {**shapes, "others": sorted(others)}


@probe("values")
def ordinary(student, rng):
    """Fewer tokens than the context is long."""
    return attention(student, rng)(rng.randn(2, 5, D_IN))


@probe("values")
def full_context(student, rng):
    """As many tokens as the context is long."""
    return attention(student, rng, sizes=(5, 4, 6))(rng.randn(3, 6, 5))


@probe("values")
def narrow(student, rng):
    """Fewer output than input features."""
    return attention(student, rng, sizes=(7, 2, 9))(rng.randn(5, 6, 7) * 0.5)


@probe("square")
def square(student, rng):
    """Batch, tokens and features of one size."""
    return attention(student, rng, sizes=(4, 4, 4))(rng.randn(4, 4, 4))


@probe("options")
def biases(student, rng):
    """Layers with biases."""
    return attention(student, rng, True)(rng.randn(2, 5, D_IN))


@probe("options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate of a half, and with a rate of 1."""
    module = attention(student, rng, dropout=0.5)
    found = extremes(student, module, rng.randn(1, 3, D_IN), two_keys=module)
    return found | {"rate 1": attention(student, rng, dropout=1.0)(rng.randn(2, 5, D_IN))}


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    return shapes_of(attention(student, rng))


@probe("layers")
def parameters_with_biases(student, rng):
    """The shapes of the parameters with biases."""
    return shapes_of(attention(student, rng, True))


@probe("gradient")
def gradient(student, rng):
    """The gradients of the input and of the parameters."""
    return gradients_of(attention(student, rng), rng.randn(2, 5, D_IN))


@probe("gradient")
def gradient_in_training(student, rng):
    """The gradients in training mode without dropout."""
    return gradients_of(attention(student, rng).train(), rng.randn(2, 5, D_IN))


@probe("training")
def training(student, rng):
    """Training mode without dropout."""
    return attention(student, rng).train()(rng.randn(2, 5, D_IN))


@probe("training", decides=False)
def dropped(student, rng):
    """Training mode with dropout of a half."""
    module = attention(student, rng, dropout=0.5).train()
    return extremes(student, module, rng.randn(1, 4, D_IN), two_keys=module)


@probe("training", decides=False)
def dropped_less(student, rng):
    """Training mode with a dropout of 0.3."""
    module = attention(student, rng, dropout=0.3).train()
    return extremes(student, module, rng.randn(1, 3, D_IN), two_keys=module)


@probe("training")
def weights_dropped(student, rng):
    """Which weights of two sentences are dropped together, over 40 draws."""
    module = attention(student, rng, dropout=0.5).train()
    x = rng.randn(1, 3, D_IN).repeat(2, 1, 1) * 0.5
    values = x @ module.state_dict()["W_value.weight"].T
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)])
    return dropped_weights(outputs, values, torch.ones(3, 3).tril().bool())


@probe("training")
def share_dropped(student, rng):
    """How often the value of a first token is dropped at a rate of 0.3."""
    module, x = attention(student, rng, dropout=0.3).train(), rng.randn(1, 2, D_IN)
    return share_of_zeros(student, lambda copies: module(copies)[:, 0], x)


@probe("extreme scores")
def large(student, rng):
    """Inputs of a hundred."""
    return attention(student, rng)(rng.randn(2, 5, D_IN) * 100)


@probe("extreme scores")
def token_of_zeros(student, rng):
    """A token of zeros, whose scores are all 0."""
    x = rng.randn(2, 5, D_IN)
    x[:, 2] = 0.0
    return attention(student, rng)(x)


@probe("extreme scores")
def towering_future(student, rng):
    """A last token a thousand times as large as the others."""
    x = rng.randn(2, 5, D_IN)
    x[:, -1] *= 1e3
    return attention(student, rng)(x)


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
    module = attention(student, rng)
    W_query = rng.randn(D_OUT, D_IN)
    module.load_state_dict({"W_query.weight": W_query, "W_key.weight": -W_query}, strict=False)
    scales = torch.tensor([1e2, 1e4, 1e6], dtype=FLOAT64).view(3, 1, 1)
    return module(rng.randn(3, 4, D_IN) * scales) / scales


@probe("single")
def one_token(student, rng):
    """One token."""
    return attention(student, rng, sizes=(D_IN, 12, CONTEXT))(rng.randn(2, 1, D_IN))


@probe("single")
def one_item(student, rng):
    """One sentence, and a single output feature."""
    narrow = attention(student, rng, sizes=(D_IN, 1, CONTEXT))
    return [attention(student, rng)(rng.randn(1, 5, D_IN)), narrow(rng.randn(3, 5, D_IN))]


@probe("single")
def one_token_alone(student, rng):
    """One sentence of one token."""
    return attention(student, rng, sizes=(D_IN, 12, CONTEXT))(rng.randn(1, 1, D_IN))


@probe("views")
def transposed(student, rng):
    """x is a transposed view."""
    return attention(student, rng)(rng.randn(5, 2, D_IN).transpose(0, 1))


@probe("dtype")
def single_precision(student, rng):
    """A module and an input in float32."""
    module = attention(student, rng, dtype=torch.float32)
    return module(rng.randn(2, 5, D_IN, dtype=torch.float32))


@probe("dtype")
def half_precision(student, rng):
    """A module and an input in bfloat16."""
    module = attention(student, rng, dtype=torch.bfloat16)
    return module(rng.randn(2, 5, D_IN, dtype=torch.bfloat16))


@probe("writes")
def argument(student, rng):
    """x after the call."""
    return written(student, attention(student, rng), rng.randn(2, 5, D_IN))


@probe("refusals")
def too_long(student, rng):
    """One token more than the context is long."""
    output = attention(student, rng)(rng.randn(2, CONTEXT + 1, D_IN))
    return torch.ones_like(output)  # the values would show other mistakes


@probe("training")
def share_of_single_tokens(student, rng):
    """How often the value of a token alone is dropped at a rate of 0.3."""
    module = attention(student, rng, dropout=0.3).train()
    return share_of_zeros(student, module, rng.randn(1, 1, D_IN))


@probe("values")
def other_weights(student, rng):
    """The output without gradients, after a call with other weights."""
    module, x = attention(student, rng), rng.randn(2, 5, D_IN)
    names = ("W_query.weight", "W_key.weight", "W_value.weight")
    state = {name: each for name, each in module.state_dict().items() if name in names}
    with torch.no_grad():
        module(x)
        module.load_state_dict({name: -each for name, each in state.items()}, strict=False)
        return module(x)


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


@probe("refusals")
def two_tokens_where_one_is_the_most(student, rng):
    """Two tokens with a context of one."""
    output = attention(student, rng, sizes=(D_IN, D_OUT, 1))(rng.randn(2, 2, D_IN))
    return torch.ones_like(output)


@probe("dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    module, x = attention(student, rng), rng.randn(2, 5, D_IN)
    return works_when_new(module, lambda: student.CausalAttention(D_IN, D_OUT, CONTEXT, 0.0), x)


@probe("dtype")
def converted_after_a_call(student, rng):
    """A module that was converted to bfloat16 after a call in float64."""
    module, x = attention(student, rng), rng.randn(2, 5, D_IN)
    module(x)
    return module.to(torch.bfloat16)(x.bfloat16())


@probe("devices")
def moved(student, rng):
    """Whether a new module works after a move to another device."""
    return works_elsewhere(
        lambda: student.CausalAttention(D_IN, D_OUT, CONTEXT, 0.5), rng.randn(2, 5, D_IN).float()
    )
