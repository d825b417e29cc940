"""Probes of trainable self-attention: what tells its mistakes apart."""

import math

import torch

from grader.probing import (
    ACCEPTED,
    Aspect,
    build,
    gradients,
    often,
    probe,
    seeded,
    works_too,
    written,
)

AXES = ("batch item", "token", "feature")  # of an output, in the singular

D_IN, D_OUT, N_TOKENS = 3, 6, 5
NAMES = ("W_query", "W_key", "W_value")
FLOAT64 = torch.float64
LINEAR = Aspect("linear layers", "what `SelfAttentionV2` returns")
COPY = Aspect("copy", "what is in both modules after `copy_weights`")
SEPARATE = Aspect("separate", "what the modules share after `copy_weights`", is_edge=True)
START = Aspect("start", "the numbers that V1 starts with", is_edge=True)


def first(student, rng, *, sizes=(D_IN, D_OUT), dtype=FLOAT64):
    """Return a V1 with random parameters."""
    return build(student.SelfAttentionV1, *sizes, rng=rng, dtype=dtype, layers=NAMES)


def second(student, rng, *options, sizes=(D_IN, D_OUT), dtype=FLOAT64):
    """Return a V2 whose layers have random parameters."""
    return build(student.SelfAttentionV2, *sizes, *options, rng=rng, dtype=dtype, layers=NAMES)


def both(student, rng, **options):
    """Return a V1 and a V2."""
    return first(student, rng, **options), second(student, rng, **options)


def matrices(module):
    """Return the three matrices of a V1, or what there is of them."""
    return {name: value.detach() for name, value in module.named_parameters()}


@probe("values")
def ordinary(student, rng):
    """V1 for five tokens."""
    return first(student, rng)(rng.randn(N_TOKENS, D_IN))


@probe("values")
def narrow(student, rng):
    """V1 with fewer output than input features."""
    return first(student, rng, sizes=(7, 2))(rng.randn(6, 7) * 0.5)


@probe(LINEAR)
def ordinary_linear(student, rng):
    """V2 for five tokens."""
    return second(student, rng)(rng.randn(N_TOKENS, D_IN))


@probe(LINEAR)
def narrow_linear(student, rng):
    """V2 with fewer output than input features."""
    return second(student, rng, sizes=(7, 2))(rng.randn(6, 7) * 0.5)


@probe("square")
def square(student, rng):
    """V1 and V2 with tokens and features of one size."""
    return [each(rng.randn(4, 4)) for each in both(student, rng, sizes=(4, 4))]


@probe("options")
def biases(student, rng):
    """V2 with biases."""
    return second(student, rng, True)(rng.randn(N_TOKENS, D_IN))


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters of V1 and V2."""
    return [shapes_of(each) for each in both(student, rng)]


@probe("layers")
def parameters_with_biases(student, rng):
    """The sizes of the parameters of V2 with biases, each ten times; 0 for one that is missing."""
    found = shapes_of(second(student, rng, True))
    wanted = [f"{name}.{part}" for name in NAMES for part in ("weight", "bias")]
    sizes = {name: math.prod(found.pop(name, [0])) for name in wanted}
    return {**{name: often(size) for name, size in sizes.items()}, "others": sorted(found)}


def shapes_of(module):
    return {name: list(each.shape) for name, each in module.named_parameters()}


@probe(START)
def start(student, rng):
    """Five times the quintiles of the numbers that V1 starts with, each three times."""
    with seeded(student, 11):
        module = student.SelfAttentionV1(50, 40)
    places = torch.linspace(0, 1, 6).repeat(3)
    found = {name: each.detach().float() for name, each in module.named_parameters()}
    return {
        n: (each.flatten().quantile(places) * 5).round().clamp(-2, 7) for n, each in found.items()
    }


@probe(START)
def start_of_a_pair(student, rng):
    """Which numbers of a second V1 are those of the first, and of W_key those of W_query."""
    with seeded(student, 12):
        modules = [matrices(student.SelfAttentionV1(4, 5)) for _ in range(2)]
    one, other = modules
    pairs = [(one[name], other[name]) for name in NAMES if name in one]
    pairs += [(one["W_query"], one["W_key"])] if len(pairs) == 3 else []
    return [left == right for left, right in pairs]


@probe(COPY)
def copied(student, rng):
    """The matrices of V1 and V2 after the copy."""
    source, target = second(student, rng), first(student, rng)
    student.copy_weights(source, target)
    return [matrices(target), matrices(source)]


@probe(COPY)
def copied_square(student, rng):
    """The matrices of V1 after the copy with d_in = d_out."""
    source, target = second(student, rng, sizes=(4, 4)), first(student, rng, sizes=(4, 4))
    student.copy_weights(source, target)
    return matrices(target)


@probe(COPY)
def same_outputs(student, rng):
    """Which outputs of both are the same after the copy."""
    source, target = second(student, rng), first(student, rng)
    student.copy_weights(source, target)
    x = rng.randn(N_TOKENS, D_IN)
    return (target(x) - source(x)).abs() < 1e-6  # numbers would show other mistakes as well


@probe(SEPARATE)
def later_source(student, rng):
    """Which outputs of V1 change when V2 changes after the copy."""
    source, target = second(student, rng), first(student, rng)
    student.copy_weights(source, target)
    x = rng.randn(N_TOKENS, D_IN)
    before = target(x).detach()
    state = {f"{name}.weight": rng.randn(D_OUT, D_IN) for name in NAMES}
    source.load_state_dict(state, strict=False)
    return target(x).detach() != before


@probe(SEPARATE)
def later_source_of_one_feature(student, rng):
    """Which outputs of V1 change when V2 changes after the copy, for one output feature."""
    source, target = second(student, rng, sizes=(D_IN, 1)), first(student, rng, sizes=(D_IN, 1))
    student.copy_weights(source, target)
    x = rng.randn(12, D_IN)
    before = target(x).detach()
    state = {f"{name}.weight": rng.randn(1, D_IN) for name in NAMES}
    source.load_state_dict(state, strict=False)
    return target(x).detach() != before


@probe(SEPARATE)
def trained_copy(student, rng):
    """Which weights of V1 and V2 get gradients from a loss of V1 after the copy."""
    source, target = second(student, rng), first(student, rng)
    student.copy_weights(source, target)
    target.zero_grad()
    source.zero_grad()
    target(rng.randn(N_TOKENS, D_IN)).square().sum().backward()
    found = [
        (name, each.grad) for module in (target, source) for name, each in module.named_parameters()
    ]
    return {name: each != 0 if each is not None else often(False) for name, each in found}


@probe(SEPARATE)
def source_learns_after_the_copy(student, rng):
    """Whether the parameters of V2 need gradients after the copy."""
    source, target = second(student, rng), first(student, rng)
    student.copy_weights(source, target)
    return {name: often(each.requires_grad) for name, each in source.named_parameters()}


@probe(SEPARATE)
def learns_after_the_copy(student, rng):
    """Whether the parameters of V1 need gradients after the copy."""
    source, target = second(student, rng), first(student, rng)
    student.copy_weights(source, target)
    return {name: often(each.requires_grad) for name, each in target.named_parameters()}


@probe(SEPARATE)
def learns_after_a_copy_of_a_frozen_source(student, rng):
    """Whether the parameters of V1 need gradients after the copy of a V2 that is frozen."""
    source, target = second(student, rng), first(student, rng)
    source.requires_grad_(False)
    student.copy_weights(source, target)
    return {name: often(each.requires_grad) for name, each in target.named_parameters()}


@probe("gradient")
def gradient(student, rng):
    """The gradients of x and of the parameters of V1, in training mode."""
    return gradients(first(student, rng).train(), rng.randn(N_TOKENS, D_IN))


@probe("gradient")
def gradient_of_linear(student, rng):
    """The gradients of x and of the parameters of V2, in training mode."""
    return gradients(second(student, rng).train(), rng.randn(N_TOKENS, D_IN))


@probe("leading axes")
def one(student, rng):
    """One leading axis."""
    return [each(rng.randn(2, N_TOKENS, D_IN)) for each in both(student, rng)]


@probe("leading axes")
def as_many_items_as_tokens(student, rng):
    """As many sentences as tokens and features."""
    return [each(rng.randn(4, 4, 4)) for each in both(student, rng, sizes=(4, 4))]


@probe("leading axes")
def two(student, rng):
    """Two leading axes."""
    return [each(rng.randn(2, 3, 4, D_IN)) for each in both(student, rng)]


@probe("extreme scores")
def large(student, rng):
    """Inputs of a hundred."""
    return [each(rng.randn(N_TOKENS, D_IN) * 100) for each in both(student, rng)]


@probe("extreme scores")
def too_large(student, rng):
    """Which outputs are finite as the tokens of a sentence get larger."""
    levels = torch.logspace(0.5, 4, 24, dtype=FLOAT64).view(24, 1)
    tokens = rng.randn(24, D_IN) * levels
    return [
        torch.stack([each(tokens[i : i + 3]) for i in range(22)]).isfinite()
        for each in both(student, rng)
    ]


@probe("single")
def one_token(student, rng):
    """One token."""
    return [each(rng.randn(1, D_IN)) for each in both(student, rng, sizes=(D_IN, 12))]


@probe("single")
def one_feature(student, rng):
    """One output feature, and then one of each kind for one token and for several."""
    found = [each(rng.randn(12, D_IN)) for each in both(student, rng, sizes=(D_IN, 1))]
    modules = both(student, rng, sizes=(1, 1))
    return found + [m(rng.randn(*shape)) for m in modules for shape in ((2, 1, 1), (4, 3, 1))]


@probe("single")
def one_item(student, rng):
    """A batch of one sentence."""
    return [each(rng.randn(1, N_TOKENS, D_IN)) for each in both(student, rng)]


@probe("views")
def transposed(student, rng):
    """x is a transposed view."""
    return [each(rng.randn(D_IN, N_TOKENS).T) for each in both(student, rng)]


@probe("views")
def transposed_batch(student, rng):
    """x is a view of a batch whose first axes are swapped."""
    return [each(rng.randn(N_TOKENS, 2, D_IN).transpose(0, 1)) for each in both(student, rng)]


@probe("dtype")
def single_precision(student, rng):
    """Modules and inputs in float32."""
    x = rng.randn(N_TOKENS, D_IN, dtype=torch.float32)
    return [each(x) for each in both(student, rng, dtype=torch.float32)]


@probe("dtype")
def half_precision(student, rng):
    """Modules and inputs in bfloat16."""
    x = rng.randn(N_TOKENS, D_IN, dtype=torch.bfloat16)
    return [each(x) for each in both(student, rng, dtype=torch.bfloat16)]


@probe("writes")
def argument(student, rng):
    """Which numbers of x are others after a call."""
    x = rng.randn(N_TOKENS, D_IN)
    return [written(student, each, x.clone())[0] != x for each in both(student, rng)]


@probe("refusals")
def copy_of_biases(student, rng):
    """A copy from a source with biases."""
    student.copy_weights(second(student, rng, True), first(student, rng))
    return ACCEPTED


@probe("refusals")
def copy_of_zero_biases(student, rng):
    """A copy from a source whose biases are 0."""
    source = second(student, rng, True)
    source.load_state_dict({f"{name}.bias": torch.zeros(D_OUT) for name in NAMES}, strict=False)
    student.copy_weights(source, first(student, rng))
    return ACCEPTED


@probe("views")
def swapped_axes_work(student, rng):
    """Whether a view of a batch works whose first axes are swapped."""
    x = rng.randn(N_TOKENS, 2, D_IN).transpose(0, 1)
    modules = both(student, rng)
    return works_too(
        lambda: [each(x.contiguous()) for each in modules], lambda: [each(x) for each in modules]
    )
