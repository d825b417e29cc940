"""Probes of the feed-forward network: what tells its mistakes apart."""

import torch

from grader.probing import (
    build,
    dropped_weights,
    extremes,
    gradients,
    often,
    probe,
    seeded,
    share_of_zeros,
    works_too,
    works_when_new,
    written,
)
from grader.testing import watched

AXES = ("batch item", "token", "feature")  # of an output, in the singular

D_MODEL, D_FF = 4, 7


def changed(student, module, x):
    """Return which numbers of x differ after a call, 1 or 0, whatever is written there."""
    return (written(student, module, x.clone())[0] != x).double()


@probe("values")
def ordinary(student, rng):
    """Three axes."""
    return build(student.FeedForward, D_MODEL, D_FF, rng=rng)(rng.randn(2, 5, D_MODEL))


@probe("values")
def narrow(student, rng):
    """Fewer hidden units than features."""
    return build(student.FeedForward, 6, 3, rng=rng)(rng.randn(2, 5, 6))


@probe("square")
def square(student, rng):
    """All sizes equal."""
    return build(student.FeedForward, 4, 4, rng=rng)(rng.randn(4, 4, 4))


@probe("leading axes")
def two_axes(student, rng):
    """Two axes."""
    return build(student.FeedForward, D_MODEL, D_FF, rng=rng)(rng.randn(5, D_MODEL))


@probe("leading axes")
def four_axes(student, rng):
    """Four axes."""
    return build(student.FeedForward, D_MODEL, D_FF, rng=rng)(rng.randn(2, 3, 5, D_MODEL))


@probe("options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with dropout rates of a half and of 1."""
    half, one = (build(student.FeedForward, D_MODEL, D_FF, rate, rng=rng) for rate in (0.5, 1.0))
    with seeded(student, 3):
        return [half(rng.randn(2, 5, D_MODEL)), one(rng.randn(2, 5, D_MODEL))]


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    module = build(student.FeedForward, D_MODEL, D_FF, rng=rng)
    return {name: list(each.shape) for name, each in module.named_parameters()}


@probe("layers")
def values_of_parameters(student, rng):
    """The parameters under their names, filled with numbers."""
    return dict(build(student.FeedForward, D_MODEL, D_FF, rng=rng).state_dict())


@probe("gradient")
def gradient(student, rng):
    """The gradients of the input and of the parameters."""
    return gradients(build(student.FeedForward, D_MODEL, D_FF, rng=rng), rng.randn(2, 5, D_MODEL))


@probe("training")
def training(student, rng):
    """Training mode with the default rate."""
    return build(student.FeedForward, D_MODEL, D_FF, rng=rng).train()(rng.randn(2, 5, D_MODEL))


@probe("training", decides=False)
def dropped(student, rng):
    """The largest and smallest outputs in training with dropout of a quarter."""
    network = build(student.FeedForward, 3, 3, 0.25, rng=rng).train()
    return extremes(student, network, rng.randn(1, 6, 3))


@probe("training", decides=False)
def dropped_more(student, rng):
    """The largest and smallest outputs in training with dropout of two thirds."""
    network = build(student.FeedForward, 3, 3, 2 / 3, rng=rng).train()
    return extremes(student, network, rng.randn(1, 6, 3))


@probe("training")
def units_dropped(student, rng):
    """Which hidden units of two sentences are dropped together, over 40 draws."""
    module = build(student.FeedForward, 8, 8, 0.5, rng=rng).train()
    x = rng.randn(1, 3, 8).repeat(2, 1, 1)
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)])
    state = module.state_dict()
    every = torch.ones(3, 8).bool()  # (tokens, units)
    outputs = outputs - state["linear2.bias"]
    return dropped_weights(outputs, state["linear2.weight"].T, every)


@probe("training")
def share_dropped(student, rng):
    """How often a hidden unit is dropped at a rate of 0.3."""
    module = build(student.FeedForward, 5, 4, 0.3, rng=rng).train()
    state = module.state_dict()
    units = torch.linalg.pinv(state["linear2.weight"].T)

    def hidden(x):
        found = (module(x) - state["linear2.bias"]) @ units
        return torch.where(found.abs() < 1e-6, 0, found)

    return share_of_zeros(student, hidden, rng.randn(1, 2, 5))


@probe("training")
def dropped_all(student, rng):
    """Training mode with dropout of 1."""
    module = build(student.FeedForward, D_MODEL, D_FF, 1.0, rng=rng).train()
    return module(rng.randn(2, 5, D_MODEL))


@probe("extreme scores")
def large(student, rng):
    """Inputs of ten thousand."""
    return build(student.FeedForward, D_MODEL, D_FF, rng=rng)(rng.randn(2, 5, D_MODEL) * 1e4)


@probe("single")
def one_token(student, rng):
    """One token of one sentence."""
    module = build(student.FeedForward, 12, D_FF, rng=rng)
    return module(rng.randn(1, 1, 12))


@probe("views")
def transposed(student, rng):
    """x is a transposed view."""
    return build(student.FeedForward, D_MODEL, D_FF, rng=rng)(
        rng.randn(D_MODEL, 5, 2).transpose(0, 2)
    )


@probe("dtype")
def single_precision(student, rng):
    """float32."""
    module = build(student.FeedForward, D_MODEL, D_FF, rng=rng, dtype=torch.float32)
    return module(rng.randn(2, 5, D_MODEL, dtype=torch.float32))


@probe("dtype")
def half_precision(student, rng):
    """bfloat16."""
    module = build(student.FeedForward, D_MODEL, D_FF, rng=rng, dtype=torch.bfloat16)
    return module(rng.randn(2, 5, D_MODEL, dtype=torch.bfloat16))


@probe("dtype")
def half_precision_works(student, rng):
    """Whether a module that works in float64 works in bfloat16."""
    module, x = build(student.FeedForward, D_MODEL, D_FF, rng=rng), rng.randn(2, 5, D_MODEL)
    return works_too(lambda: module(x), lambda: module.to(torch.bfloat16)(x.bfloat16()))


@probe("writes")
def argument(student, rng):
    """x after the call."""
    return changed(
        student, build(student.FeedForward, D_MODEL, D_FF, rng=rng), rng.randn(2, 5, D_MODEL)
    )


@probe("writes")
def argument_without_gradients(student, rng):
    """x after a call without gradients."""
    net = build(student.FeedForward, D_MODEL, D_FF, rng=rng)
    with torch.no_grad():
        return changed(student, net, rng.randn(2, 5, D_MODEL))


@probe("views")
def transposed_works(student, rng):
    """Whether a transposed x works."""
    module = build(student.FeedForward, D_MODEL, D_FF, rng=rng)
    x = rng.randn(D_MODEL, 5, 2).transpose(0, 2)
    return works_too(lambda: module(x.contiguous()), lambda: module(x))


@probe("single")
def one_of_each(student, rng):
    """One feature, one hidden unit, or both."""
    sizes = (1, 3), (12, 1), (1, 1)
    return [build(student.FeedForward, *s, rng=rng)(rng.randn(3, 4, s[0])) for s in sizes]


@probe("dtype")
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    module, x = build(student.FeedForward, D_MODEL, D_FF, rng=rng), rng.randn(2, 5, D_MODEL)
    return works_when_new(module, lambda: student.FeedForward(D_MODEL, D_FF), x)


@probe("training")
def dropped_without_gradients(student, rng):
    """Training mode with dropout of 1, without gradients."""
    module = build(student.FeedForward, D_MODEL, D_FF, 1.0, rng=rng).train()
    with torch.no_grad():
        return module(rng.randn(2, 5, D_MODEL))


@probe("training")
def dropped_after_evaluation(student, rng):
    """Training mode with dropout of 1, as an int, after a call in evaluation mode."""
    module, x = build(student.FeedForward, D_MODEL, D_FF, 1, rng=rng), rng.randn(2, 5, D_MODEL)
    module(x)
    return module.train()(x)


@probe("leading axes")
def operations(student, rng):
    """Whether more operations run for more sentences or tokens."""
    module, counts = build(student.FeedForward, D_MODEL, D_FF, rng=rng), []
    for shape in ((2, 3), (40, 3), (2, 40)):
        with watched(student, kernels=False) as seen:
            module(rng.randn(*shape, D_MODEL))
        counts.append(seen.operations)
    return often(counts[1] > counts[0], counts[2] > counts[0])


@probe("training")
def seldom_dropped(student, rng):
    """Whether hidden units are dropped at a rate of 0.008, of some ten thousand."""
    module = build(student.FeedForward, D_MODEL, D_FF, 0.008, rng=rng)
    x = rng.randn(2000, D_MODEL)
    with seeded(student, 9):
        plain, found = module(x), module.train()(x)
    return often(bool((plain - found).abs().max() > 0.1 * plain.abs().max()))
