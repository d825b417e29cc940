"""The checks of SwiGLU and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    ROUGH,
    Aspect,
    Check,
    after_training,
    argument_cases,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    dropped_weights,
    drops_anew,
    dtype_cases,
    extremes,
    gradient,
    load_parameters,
    moved,
    output,
    output_of,
    parameters,
    refused,
    seeded,
    share_of_zeros,
    turned,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
SIZES = Aspect("sizes", "what `hidden_size` returns")
B, N, D, F = 2, 5, 4, 7  # batch items, tokens, features, hidden units
NET = "SwiGLU"
network = functools.partial(built, NET, layers=("W_gate", "W_up", "W_down"))
net = network(D, F)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The network is written by hand, without torch's gated units."""
    x = rng.randn(B, N, D, dtype=torch.float32)
    assert_written_by_hand(
        student, lambda: output_of(student.SwiGLU(D, F), x), lambda: student.hidden_size(D)
    )


test_layers = Check(
    "W_gate, W_up and W_down have no biases, and nothing else learns.", about="layers"
)
test_layers.case("The shapes of the parameters.", parameters(NET, D, F))
test_layers.case("The shapes for other sizes.", parameters(NET, 3, 2, 0.5), hidden=True)


test_formula = Check(
    "The output is W_down(silu(W_gate x) * W_up x) at each position, for any leading axes.",
    points=2,
)
values = test_formula.case
values("Three axes.", output(net, drawn(B, N, D)))
values("Fewer hidden units than features.", output(network(6, 3), drawn(B, N, 6)))
values("Five features, two hidden units.", output(network(5, 2), drawn(3, 4, 5)), hidden=True)
values("All sizes equal.", output(network(4, 4), drawn(4, 4, 4)), about="square")
values("Two axes.", output(net, drawn(N, D)), about="leading axes")
values("Four axes.", output(net, drawn(2, 3, 5, D)), about="leading axes")
values("Five axes.", output(net, drawn(2, 1, 3, 4, D)), about="leading axes", hidden=True)
values("One token.", output(network(12, F), drawn(1, 1, 12)), about="single")
values("One feature and one hidden unit.", output(network(1, 1), drawn(3, 4, 1)), about="single")
for shape in ((3, 1, 6), (1, 3, 6), (1, 6)):  # one token or sentence, or a single vector
    ask = output(network(6, 5), drawn(*shape))
    values(f"An x of shape {shape}.", ask, about="single", hidden=True)
values("Ten thousands.", output(net, drawn(B, N, D, times=1e4)), about="extreme scores")
two = gradient(net, drawn(N, D, times=1e4))
values("Two axes of ten thousands, with gradients.", two, about="extreme scores", hidden=True)


@values(about="extreme scores")
def far(student, rng):
    """Which outputs and gradients are finite where silu gets tens of thousands."""
    x = torch.tensor([[[1e5], [-1e5]]], dtype=torch.float64)
    found = gradient(network(1, 12), x)(student, rng)
    return {name: each.isfinite() for name, each in found.items() if torch.is_tensor(each)}


test_hidden_size = Check(
    "hidden_size is 8 * d_model // 3, rounded up to a multiple, which must be at least 1.",
    about=SIZES,
)
size = test_hidden_size.case


@size
def many_sizes(student, rng):
    """The sizes for some d_model and multiples."""
    return [[float(student.hidden_size(d, m)) for d in range(1, 60, 7)] for m in (1, 2, 8, 32, 90)]


@size
def default_multiple(student, rng):
    """The sizes without the argument."""
    return [float(student.hidden_size(d)) for d in (1, 48, 64, 96, 97, 288, 512, 4096, 5120, 8192)]


@size(hidden=True)
def multiples_already(student, rng):
    """The sizes that are multiples already, or one more."""
    return [
        float(student.hidden_size(3 * m * k // 8 + more, m))
        for m in (8, 16, 64)
        for k in (1, 4)
        for more in (0, 1)
    ]


for multiple in (0, -8):
    ask = refused("hidden_size", 64, multiple)
    size(f"A multiple of {multiple}.", ask, about="refusals")
size("A multiple of -1.", refused("hidden_size", 9, -1), about="refusals", hidden=True)


test_dropout = Check(
    "In training, each unit of the product is dropped at the rate or scaled up; in eval, none.",
    about="training",
)
training = test_dropout.case
training("Training mode, default rate.", output(network(D, F, training=True), drawn(B, N, D)))
training("Training mode, rate 1.", output(network(D, F, 1.0, training=True), drawn(B, N, D)))
training("Eval mode, rate a half.", output(network(D, F, 0.5), drawn(B, N, D)), about="options")
ask = after_training(network(D, 9, dropout=0.6), drawn(3, N, D))
training("Evaluation mode after training.", ask, about="options", hidden=True)


@training
def units_dropped(student, rng):
    """Which hidden units of two sentences are dropped together, over 40 draws."""
    module = network(8, 8, 0.5)(student, rng).train()
    x = rng.randn(1, 3, 8).repeat(2, 1, 1)
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)])
    weight = module.state_dict()["W_down.weight"]
    return dropped_weights(outputs, weight.T, torch.ones(3, 8).bool())


@training
def share_dropped(student, rng):
    """How often a hidden unit is dropped at a rate of 0.3."""
    module = network(5, 4, 0.3)(student, rng).train()
    units = torch.linalg.pinv(module.state_dict()["W_down.weight"].T)

    def hidden(x):
        found = module(x) @ units
        return torch.where(found.abs() < 1e-9, 0, found)

    return share_of_zeros(student, hidden, rng.randn(1, 2, 5))


@training
def next_call(student, rng):
    """Whether the next call drops other hidden units."""
    return drops_anew(student, network(D, F, 0.4)(student, rng).train(), rng.randn(12, N, D))


@training
def most_and_least(student, rng):
    """The extremes of the outputs in training with dropout of two thirds."""
    return extremes(student, network(3, 3, 2 / 3)(student, rng).train(), rng.randn(1, N, 3))


@training(tells=False, hidden=True)
def each_unit_at_the_rate(student, rng):
    """Each hidden unit is dropped at a rate of 0.39."""
    ones = {"W_gate.weight": torch.ones(5, 8), "W_up.weight": torch.ones(5, 8)}
    state = ones | {"W_down.weight": torch.eye(8, 5)}
    module = load_parameters(student.SwiGLU(8, 5, 0.39), state).train()
    for shape in ((200, 3, 8), (600, 8)):
        seen = output_of(module, torch.ones(shape, dtype=torch.float64))[..., :5]
        assert_dropped(seen == 0, 0.39, "hidden units")


test_any_input = Check(
    "Gradients reach x and the layers; x may be any view, in any dtype, and is not modified.",
    about="gradient",
)
inputs = test_any_input.case
inputs("The gradients of x and the parameters.", gradient(net, drawn(B, N, D)))
inputs("The gradients with two axes.", gradient(net, drawn(N, D)), hidden=True)
ask = gradient(network(5, 8, training=True), drawn(3, 1, 5))
inputs("The gradients in training.", ask, hidden=True)
argument_cases(test_any_input, functools.partial(network, D, F, 0.3), drawn(B, N, D))
dtype_cases(test_any_input, functools.partial(network, D, F), (B, N, D), NET, D, F)
ask = moved(NET, D, F, x=drawn(N, D, dtype=torch.float32))
inputs("A move, for two axes.", ask, about="devices", hidden=True)
inputs("Two axes, swapped.", output(net, turned(drawn(N, D))), about="views", hidden=True)
inputs("Two axes after a call.", changed(net, drawn(N, D)), about="writes", hidden=True)
low = torch.bfloat16
inputs(
    "Two axes in bfloat16.",
    output(network(D, F, dtype=low), drawn(N, D, dtype=low)),
    about="dtype",
    within=ROUGH,
    hidden=True,
)


@inputs(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences, tokens, features or units."""

    def called(batch=2, n_tokens=3, d_model=4, d_ff=6):
        x, module = rng.randn(batch, n_tokens, d_model), student.SwiGLU(d_model, d_ff)
        return lambda: [output_of(module, each.float()) for each in (x, x[0], x[:, None])]

    grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
    grown |= {"features": {"d_model": (110, 222)}, "hidden units": {"d_ff": (113, 227)}}
    assert_vectorised(student, called, grown)
