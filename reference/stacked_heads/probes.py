"""Probes of stacked heads: what tells its mistakes apart."""

import torch

from grader.probing import (
    ACCEPTED,
    Aspect,
    build,
    dropped_weights,
    gradients,
    often,
    probe,
    seeded,
    works_too,
    works_when_new,
    written,
)

AXES = ("batch item", "token", "feature")  # of an output, in the singular

D_IN, D_OUT, CONTEXT, HEADS = 3, 4, 7, 5
SPLIT = Aspect("split", "what `split_weights` returns")
START = Aspect("start", "the numbers that heads start with", is_edge=True)


def stacked(
    student,
    rng,
    *options,
    dropout=0.0,
    sizes=(D_IN, D_OUT, CONTEXT),
    heads=HEADS,
    dtype=torch.float64,
):
    """Return a module in evaluation mode, whose heads have random parameters."""
    made = student.StackedHeads
    return build(made, *sizes, dropout, heads, *options, rng=rng, dtype=dtype, layers=["heads"])


def shapes_of(module):
    """Return the shapes of the parameters: of the heads by name, and of others."""
    shapes = {name: list(each.shape) for name, each in module.named_parameters()}
    others = [shapes.pop(name) for name in list(shapes) if not name.startswith("heads.")]
    return {**shapes, "others": sorted(others)}


@probe("values")
def ordinary(student, rng):
    """Five heads of size 4."""
    return stacked(student, rng)(rng.randn(2, 6, D_IN))


@probe("values")
def two_heads(student, rng):
    """Two heads of size 3 at the full context."""
    return stacked(student, rng, sizes=(5, 3, 4), heads=2)(rng.randn(3, 4, 5))


@probe("square")
def as_many_features_as_before(student, rng):
    """As many features in the output as in the input."""
    return stacked(student, rng, sizes=(6, 2, 5), heads=3)(rng.randn(2, 4, 6))


@probe("values")
def many_heads(student, rng):
    """Twelve heads of size 1."""
    return stacked(student, rng, sizes=(2, 1, 4), heads=12)(rng.randn(3, 4, 2))


@probe("square")
def square(student, rng):
    """All sizes equal."""
    return stacked(student, rng, sizes=(4, 4, 4), heads=4)(rng.randn(4, 4, 4))


@probe("options")
def biases(student, rng):
    """Heads with biases."""
    return stacked(student, rng, True)(rng.randn(2, 6, D_IN))


@probe("options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate of a half."""
    module = stacked(student, rng, dropout=0.5)
    with seeded(student, 3):
        return module(rng.randn(2, 6, D_IN))


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    return shapes_of(stacked(student, rng))


@probe("layers")
def parameters_with_biases(student, rng):
    """The shapes of the parameters with biases."""
    return shapes_of(stacked(student, rng, True))


@probe(START)
def start(student, rng):
    """Which numbers of other heads are those of the first one at the start."""
    with seeded(student, 4):
        module = student.StackedHeads(D_IN, D_OUT, CONTEXT, 0.0, HEADS)
    found = {name: each.detach() for name, each in module.named_parameters()}
    first = found.get("heads.0.W_query.weight", torch.zeros(D_OUT, D_IN))
    others = [found.get(f"heads.{head}.W_query.weight", first + 1) for head in range(1, HEADS)]
    return [each == first if each.shape == first.shape else "another shape" for each in others]


@probe(SPLIT)
def split(student, rng):
    """The three matrices of twelve heads of size 2."""
    module = stacked(student, rng, sizes=(D_IN, 2, CONTEXT), heads=12)
    return [each.detach() for each in student.split_weights(module)]


@probe(SPLIT)
def split_of_two(student, rng):
    """The three matrices of two heads with as many features as a token."""
    module = stacked(student, rng, sizes=(4, 4, CONTEXT), heads=2)
    return [each.detach() for each in student.split_weights(module)]


@probe(SPLIT)
def after_split(student, rng):
    """The output in evaluation mode, with dropout of 1, after `split_weights`."""
    module = stacked(student, rng, dropout=1.0)
    student.split_weights(module)
    return module(rng.randn(2, 6, D_IN))


@probe(SPLIT)
def training_after_split(student, rng):
    """The output in training mode, with dropout of 1, after `split_weights`."""
    module = stacked(student, rng, dropout=1.0).train()
    student.split_weights(module)
    return module(rng.randn(2, 6, D_IN))


@probe("gradient")
def gradient(student, rng):
    """The gradients of the input and of the parameters."""
    return gradients(stacked(student, rng, heads=2), rng.randn(2, 5, D_IN))


@probe("training")
def training(student, rng):
    """Training mode without dropout."""
    return stacked(student, rng).train()(rng.randn(2, 6, D_IN))


@probe("training")
def weights_dropped(student, rng):
    """Which weights of two sentences and heads are dropped together, over 40 draws."""
    module = stacked(student, rng, dropout=0.5, heads=2).train()
    x, state = rng.randn(1, 3, D_IN).repeat(2, 1, 1) * 0.5, module.state_dict()
    layers = torch.stack([state[f"heads.{head}.W_value.weight"] for head in range(2)])
    values = (x.unsqueeze(1) @ layers.mT).detach()  # (batch, heads, tokens, d_out)
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)]).unflatten(3, (2, -1))
    return dropped_weights(outputs.transpose(2, 3), values, torch.ones(3, 3).tril().bool())


@probe("training", decides=False)
def dropped(student, rng):
    """What is left in training with dropout of a half: the largest and smallest outputs."""
    module = stacked(student, rng, dropout=0.5).train()
    with seeded(student, 5):
        output = module(rng.randn(1, 2, D_IN).repeat(400, 1, 1)).detach()
    return [output.amax(0), output.amin(0)]


@probe("training", decides=False)
def share_dropped(student, rng):
    """How often the value of a single token is dropped at a rate of 0.3."""
    module, x = stacked(student, rng, dropout=0.3).train(), rng.randn(1, 1, D_IN)
    with seeded(student, 6):
        output = module(x.repeat(800, 1, 1))
    share = (output == 0).double().mean(0)  # of each feature
    # No share of a right draw is near one of these.
    return torch.stack([share > level for level in (0.2, 0.4, 0.6, 0.8)])


@probe("training")
def dropped_all(student, rng):
    """Training mode with dropout of 1."""
    return stacked(student, rng, dropout=1.0).train()(rng.randn(2, 6, D_IN))


@probe("extreme scores")
def large(student, rng):
    """Inputs of a hundred."""
    return stacked(student, rng)(rng.randn(2, 6, D_IN) * 100)


@probe("single")
def one_token(student, rng):
    """One token."""
    return stacked(student, rng)(rng.randn(2, 1, D_IN))


@probe("single")
def one_item(student, rng):
    """One sentence."""
    return stacked(student, rng)(rng.randn(1, 6, D_IN))


@probe("single")
def one_head(student, rng):
    """One head."""
    return stacked(student, rng, heads=1)(rng.randn(2, 6, D_IN))


@probe("single")
def one_feature(student, rng):
    """Heads of size 1."""
    return stacked(student, rng, sizes=(D_IN, 1, CONTEXT))(rng.randn(2, 6, D_IN))


@probe("views")
def transposed(student, rng):
    """x is a transposed view."""
    return stacked(student, rng)(rng.randn(6, 2, D_IN).transpose(0, 1))


@probe("dtype")
def single_precision(student, rng):
    """A module and an input in float32."""
    module = stacked(student, rng, dtype=torch.float32)
    return [module(rng.randn(2, 6, D_IN, dtype=torch.float32)), student.split_weights(module)[1]]


@probe("dtype")
def half_precision(student, rng):
    """A module and an input in bfloat16."""
    module = stacked(student, rng, dtype=torch.bfloat16)
    return module(rng.randn(2, 6, D_IN, dtype=torch.bfloat16))


@probe("writes")
def argument(student, rng):
    """Which numbers of x are others after a call."""
    x = rng.randn(2, 6, D_IN)
    return written(student, stacked(student, rng), x.clone())[0] != x


@probe("refusals")
def too_long(student, rng):
    """One token more than the context is long."""
    return torch.ones_like(stacked(student, rng)(rng.randn(2, CONTEXT + 1, D_IN)))


@probe("refusals")
def split_of_biases(student, rng):
    """`split_weights` of heads with biases."""
    student.split_weights(stacked(student, rng, True))
    return ACCEPTED


@probe(SPLIT)
def learns_after_split(student, rng):
    """Whether the parameters need gradients after `split_weights`."""
    module = stacked(student, rng)
    student.split_weights(module)
    return {name: often(each.requires_grad) for name, each in module.named_parameters()}


@probe("refusals")
def split_of_biases_of_zero(student, rng):
    """`split_weights` of heads with biases, which are all 0."""
    module = stacked(student, rng, True)
    state = {name: each * 0 for name, each in module.state_dict().items() if "bias" in name}
    module.load_state_dict(state, strict=False)
    student.split_weights(module)
    return ACCEPTED


@probe("views")
def transposed_works(student, rng):
    """Whether a transposed x works."""
    module, x = stacked(student, rng), rng.randn(6, 2, D_IN).transpose(0, 1)
    return works_too(lambda: module(x.contiguous()), lambda: module(x))


@probe("values")
def full_context_works(student, rng):
    """Whether as many tokens work as the context is long."""
    module, x = stacked(student, rng), rng.randn(2, CONTEXT, D_IN)
    return works_too(lambda: module(x[:, :-1]), lambda: module(x))


@probe("layers")
def names_in_the_state(student, rng):
    """Whether all weights in the state_dict are those of heads."""
    names = [n for n in stacked(student, rng).state_dict() if n.endswith("weight")]
    return often(all(name.startswith("heads.") for name in names))


@probe("single")
def one_of_each(student, rng):
    """One feature and heads of size 1: the output and the matrices."""
    module = stacked(student, rng, sizes=(1, 1, CONTEXT))
    return [module(rng.randn(2, 6, 1)), *(m.detach() for m in student.split_weights(module))]


@probe("dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    module, x = stacked(student, rng), rng.randn(2, 6, D_IN)
    return works_when_new(module, lambda: student.StackedHeads(D_IN, D_OUT, CONTEXT, 0.0, HEADS), x)


@probe(SPLIT)
def split_after_a_change(student, rng):
    """The matrices of heads whose weights have changed since the last call."""
    module = stacked(student, rng)
    student.split_weights(module)
    state = {name: each + 1 for name, each in module.state_dict().items() if "weight" in name}
    module.load_state_dict(state, strict=False)
    return [each.detach() for each in student.split_weights(module)]


@probe("training")
def single_token_dropped(student, rng):
    """Training mode with dropout of 1, for one token."""
    return stacked(student, rng, dropout=1.0).train()(rng.randn(4, 1, D_IN))
