"""The checks of the feed-forward network and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    Check,
    after_training,
    argument_cases,
    assert_close,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    dropped_weights,
    drops_anew,
    extremes,
    gradient,
    load_parameters,
    often,
    output,
    output_of,
    parameters,
    seeded,
    share_of_zeros,
    turned,
    watched,
    works_too,
    works_when_new,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
B, N, D, F = 2, 5, 4, 7  # batch items, tokens, features, hidden units
NET = "FeedForward"
LAYERS = ("linear1", "linear2")


def network(*sizes, **options):
    """Return what makes a network whose two layers have random parameters."""
    return built(NET, *sizes, layers=LAYERS, **options)


net = network(D, F)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The network is written by hand, without a part of torch's Transformer."""
    x = rng.randn(B, N, D, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.FeedForward(D, F), x))


test_layers = Check(
    "The only parameters are the weights and biases of linear1 and linear2.", about="layers"
)
test_layers.case("The shapes of the parameters.", parameters(NET, D, F))
test_layers.case("The shapes for other sizes.", parameters(NET, 3, 2, 0.5), hidden=True)


test_formula = Check(
    "The output is linear2(relu(linear1(x))) at each position, for any leading axes.", points=2
)
values = test_formula.case
values("Three axes.", output(net, drawn(B, N, D)))
values("Fewer hidden units than features.", output(network(6, 3), drawn(B, N, 6)))
values("Five features, two hidden units.", output(network(5, 2), drawn(3, 4, 5)), hidden=True)
values("All sizes equal.", output(network(4, 4), drawn(4, 4, 4)), about="square")
values("Two axes.", output(net, drawn(N, D)), about="leading axes")
values("Four axes.", output(net, drawn(2, 3, 5, D)), about="leading axes")
values("Five axes.", output(net, drawn(2, 1, 3, 4, D)), about="leading axes", hidden=True)
values("Inputs of ten thousand.", output(net, drawn(B, N, D, times=1e4)), about="extreme scores")
million = output(net, drawn(B, N, D, times=1e6))
values("Inputs of a million.", million, about="extreme scores", hidden=True)
values(
    "Two axes of a million.",
    output(net, drawn(N, D, times=1e6)),
    about="extreme scores",
    hidden=True,
)
for sentence, shape, width in (
    ("One token of one sentence.", (1, 1, 12), F),
    ("One feature.", (3, 4, 1), 3),
    ("One hidden unit.", (3, 4, 12), 1),
    ("One feature and one hidden unit.", (3, 4, 1), 1),
):
    values(sentence, output(network(shape[-1], width), drawn(*shape)), about="single")
for shape in ((3, 1, 6), (1, 3, 6), (1, 6)):  # one token or sentence, or a single vector
    values(
        f"An x of shape {shape}.",
        output(network(6, 5), drawn(*shape)),
        about="single",
        hidden=True,
    )


test_gradients = Check(
    "Gradients reach x and the parameters, and are the slopes of the output.", about="gradient"
)
slopes = test_gradients.case
slopes("The gradients of the input and of the parameters.", gradient(net, drawn(B, N, D)))
slopes("The gradients with four axes.", gradient(net, drawn(2, 3, N, D)), hidden=True)
ask = gradient(network(5, 8, training=True), drawn(3, 1, 5))
slopes("The gradients in training mode, of one token a sentence.", ask, hidden=True)


test_dropout = Check(
    "In training, each hidden unit is dropped on its own at the rate; the rest are scaled up.",
    about="training",
)
training = test_dropout.case
default, dropping = network(D, F, training=True), network(D, F, 1.0, training=True)
training("Training mode with the default rate.", output(default, drawn(B, N, D)))
training("Training mode with dropout of 1.", output(dropping, drawn(B, N, D)))


@training
def dropped_after_evaluation(student, rng):
    """Training mode with dropout of 1, as an int, after evaluation mode, without gradients."""
    module, x = network(D, F, 1)(student, rng), rng.randn(B, N, D)
    output_of(module, x)
    return output_of(module.train(), x)


@training
def units_dropped(student, rng):
    """Which hidden units of two sentences are dropped together, over 40 draws."""
    module = network(8, 8, 0.5)(student, rng).train()
    x = rng.randn(1, 3, 8).repeat(2, 1, 1)
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)])
    state = module.state_dict()
    every = torch.ones(3, 8).bool()  # (tokens, units)
    return dropped_weights(outputs - state["linear2.bias"], state["linear2.weight"].T, every)


@training
def share_dropped(student, rng):
    """How often a hidden unit is dropped at a rate of 0.3."""
    module = network(5, 4, 0.3)(student, rng).train()
    state = module.state_dict()
    units = torch.linalg.pinv(state["linear2.weight"].T)

    def hidden(x):
        found = (module(x) - state["linear2.bias"]) @ units
        return torch.where(found.abs() < 1e-6, 0, found)

    return share_of_zeros(student, hidden, rng.randn(1, 2, 5))


@training
def seldom_dropped(student, rng):
    """Whether hidden units are dropped at a rate of 0.008, of some ten thousand."""
    module, x = network(D, F, 0.008)(student, rng), rng.randn(B, 1000, D)
    with seeded(student, 9):
        plain, found = module(x), module.train()(x)
    return often(bool((plain - found).abs().max() > 0.1 * plain.abs().max()))


@training
def next_call(student, rng):
    """Whether the next call drops other hidden units."""
    module = network(D, F, 0.4)(student, rng)
    module(rng.randn(B, 3, D))  # a call in evaluation mode ends nothing
    return drops_anew(student, module.train(), rng.randn(12, N, D))


for sentence, rate, decides in (("a quarter", 0.25, False), ("two thirds", 2 / 3, True)):

    def most_and_least(student, rng, rate=rate):
        module = network(3, 3, rate)(student, rng).train()
        return extremes(student, module, rng.randn(1, N, 3))

    shown = f"The extremes of the outputs in training with dropout of {sentence}."
    training(shown, most_and_least, decides=decides)


UNITS = {  # with them, each of the first five outputs is a hidden unit, 1.5 for ones
    "linear1.weight": torch.full((5, 8), 1 / 8),
    "linear1.bias": torch.full((5,), 0.5),
    "linear2.weight": torch.eye(8, 5),
    "linear2.bias": torch.zeros(8),
}


@test_dropout.case(tells=False, hidden=True)
def each_unit_at_the_rate(student, rng):
    """Each hidden unit is dropped at a rate of 0.39 or multiplied by 1 / 0.61."""
    rate, module = 0.39, load_parameters(student.FeedForward(8, 5, 0.39), UNITS)
    for shape in ((200, 3, 8), (600, 8)):
        seen = output_of(module.train(), torch.ones(shape, dtype=torch.float64))[..., :5]
        dropped = seen < 0.75
        kept = torch.full_like(seen, 1.5 / (1 - rate)).masked_fill(dropped, 0.0)
        assert_close(seen, kept, "what is left of hidden units of 1.5 at a rate of 0.39")
        assert_dropped(dropped, rate, "hidden units")


@test_dropout.case(hidden=True)
def many_dropped(student, rng):
    """Some 20,000 hidden units at a rate of 1."""
    module = load_parameters(student.FeedForward(8, 5, 1.0), UNITS).train()
    return output_of(module, torch.ones(1400, 3, 8, dtype=torch.float64)).abs().amax((0, 1))


test_nothing_dropped_in_eval_mode = Check(
    "In eval mode nothing is dropped, whatever the rate is.", about="options"
)
evaluation = test_nothing_dropped_in_eval_mode.case
for sentence, rate in (("a half", 0.5), ("1", 1.0)):
    ask = output(network(D, F, rate), drawn(B, N, D))
    evaluation(f"Evaluation mode with a dropout rate of {sentence}.", ask)
trained = after_training(network(D, 9, dropout=0.6), drawn(3, N, D))
evaluation("Evaluation mode after a call in training mode.", trained, hidden=True)


test_any_input = Check(
    "x may be any view, and is not modified; `net.to(dtype)` is enough to change the dtype.",
    about="views",
)
argument_cases(test_any_input, functools.partial(network, D, F, 0.3), drawn(B, N, D))
swapped = output(net, turned(drawn(3, N, D)))
test_any_input.case("Other axes of x are swapped.", swapped, hidden=True)
test_any_input.case("Two axes, swapped.", output(net, turned(drawn(N, D))), hidden=True)
test_any_input.case(
    "Which of two axes are others after a call.",
    changed(net, drawn(N, D)),
    about="writes",
    hidden=True,
)
dtypes = functools.partial(test_any_input.case, about="dtype")
for name, dtype, within in (
    ("float64", torch.float64, None),
    ("float32", torch.float32, (1e-3, 1e-3)),
    ("bfloat16", torch.bfloat16, (0.1, 0.3)),
):
    x, made = drawn(B, N, D, dtype=dtype), network(D, F, dtype=dtype)
    dtypes(f"x in {name}.", output(made, x), within=within)
    dtypes(
        f"x in {name}, with dropout of 1.",
        output(network(D, F, 1.0, dtype=dtype, training=True), x),
        hidden=True,
    )


low = torch.bfloat16
dtypes(
    "Two axes in bfloat16.",
    output(network(D, F, dtype=low), drawn(N, D, dtype=low)),
    within=(0.1, 0.3),
    hidden=True,
)


@dtypes
def half_precision_works(student, rng):
    """Whether a module that works in float64 works in bfloat16."""
    module, x = net(student, rng), rng.randn(B, N, D)
    return works_too(lambda: module(x), lambda: module.to(torch.bfloat16)(x.bfloat16()))


@dtypes
def new_module_works(student, rng):
    """Whether a new module works, in float32."""
    return works_when_new(net(student, rng), lambda: student.FeedForward(D, F), rng.randn(B, N, D))


test_no_python_loops = Check("No Python loop runs over batch, tokens or widths.")


@test_no_python_loops.case(about="leading axes")
def operations(student, rng):
    """Whether more operations run for more sentences or tokens."""
    module, counts = net(student, rng), []
    for shape in ((2, 3), (40, 3), (2, 40)):  # (batch, n_tokens)
        with watched(student, kernels=False) as seen:
            module(rng.randn(*shape, D))
        counts.append(seen.operations)
    return often(counts[1] > counts[0], counts[2] > counts[0])


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences, tokens, features or units."""

    def called(batch=2, n_tokens=3, d_model=4, d_ff=6):
        x, module = rng.randn(batch, n_tokens, d_model), student.FeedForward(d_model, d_ff)
        return lambda: [output_of(module, each.float()) for each in (x, x[0], x[:, None])]

    grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
    grown |= {"features": {"d_model": (110, 222)}, "hidden units": {"d_ff": (113, 227)}}
    assert_vectorised(student, called, grown)


for shape, width in (((105, 3, D), F), ((2, 108, D), F), ((2, 3, 110), 113)):
    test_no_python_loops.case(
        f"x of shape {shape}.", output(network(shape[-1], width), drawn(*shape)), hidden=True
    )
