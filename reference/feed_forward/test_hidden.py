"""Hidden tests of the feed-forward network, which decide the points.

A check of anything but the formula compares the student's answers with each other, so that one
mistake costs one check.
"""

import pytest
import torch
from torch import Tensor

from grader.errors import Mismatch
from grader.testing import (
    assert_close,
    assert_same,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    manual_seed,
    output_of,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, D_MODEL, D_FF = 2, 5, 4, 7
ABSOLUTE = 1e-5  # code that computes in float32 and converts back is right
STEP = 1e-8  # for slopes: tiny, since a ReLU has a corner
DRAWS = 400  # sentences of which the hidden units are dropped


def made(code, state, *args, sizes=(D_MODEL, D_FF), **kwargs):
    """Return a network in float64 and evaluation mode, with those of the parameters that fit."""
    net = code.FeedForward(*sizes, *args, **kwargs).to(torch.float64)
    shapes = {name: value.shape for name, value in net.state_dict().items()}
    fitting = {name: value for name, value in state.items() if shapes.get(name) == value.shape}
    net.load_state_dict(fitting, strict=False)
    return net.eval()


def parameters_of(rng):
    """Return random parameters by name."""
    return {
        "linear1.weight": rng.randn(D_FF, D_MODEL),
        "linear1.bias": rng.randn(D_FF),
        "linear2.weight": rng.randn(D_MODEL, D_FF),
        "linear2.bias": rng.randn(D_MODEL),
    }


def own_parameters(student, rng):
    """Return random values for those parameters of the student's that are asked for."""
    found = student.FeedForward(D_MODEL, D_FF).named_parameters()
    asked = ("linear1.", "linear2.")  # others keep their values
    return {name: rng.randn(*p.shape) for name, p in found if name.startswith(asked)}


def doubled(output):
    """Return an output in float64: another check asks for its dtype."""
    expect(isinstance(output, Tensor), "the output is not a tensor")
    return output.double()


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The network is written by hand, without a part of torch's Transformer.

    Guards: the ban on torch's layers, even if other tests fail for other reasons.
    """
    x = rng.randn(BATCH, N_TOKENS, D_MODEL, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.FeedForward(D_MODEL, D_FF), x))


@pytest.mark.points(1)
def test_layers(student, rng):
    """The only parameters are the weights and biases of linear1 and linear2."""
    found = {
        name: tuple(p.shape) for name, p in student.FeedForward(D_MODEL, D_FF).named_parameters()
    }
    wanted = {name: tuple(value.shape) for name, value in parameters_of(rng).items()}
    expect(found == wanted, f"the parameters are {found or 'none'}, not {wanted}")


@pytest.mark.points(3)
def test_formula(student, reference, rng):
    """The output is linear2(relu(linear1(x))) at each position, for any leading axes."""
    state = parameters_of(rng)
    theirs, ours = made(student, state), made(reference, state)
    shapes = ((4, D_MODEL), (BATCH, N_TOKENS, D_MODEL), (2, 3, 5, D_MODEL), (3, 1, D_MODEL))
    for shape in (*shapes, (1, N_TOKENS, D_MODEL), (1, 1, D_MODEL), (1, D_MODEL)):
        for scale in (1.0, 30.0, 1e6):
            x = rng.randn(*shape) * scale
            what = f"the output for an x of shape {shape}"
            assert_close(doubled(output_of(theirs, x)), output_of(ours, x), what, atol=ABSOLUTE)


@pytest.mark.points(1)
def test_gradients(student, rng):
    """Gradients reach x and the parameters, and are the slopes of the output."""
    state = own_parameters(student, rng)
    net = made(student, state, 0.3)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    for mode in (False, True):
        net.train(mode)
        for name, value in {"x": x, **state}.items():
            assert_slope(student, net, name, value, x, rng)


def assert_slope(student, net, name, value, x, rng):
    """Raise `Mismatch` unless the gradient of `name` predicts how the output changes."""
    direction = rng.randn(*value.shape)

    def moved(step):
        manual_seed(student, 1)  # the same hidden units are dropped in each call
        if name == "x":
            return doubled(output_of(net, x + step * direction))
        net.load_state_dict({name: value + step * direction}, strict=False)
        return doubled(output_of(net, x))

    slope = (moved(STEP) - moved(-STEP)) / (2 * STEP)
    if name != "x":
        net.load_state_dict({name: value}, strict=False)
    expect(slope.isfinite().all(), "the output is not finite")
    if slope.abs().max() < 1e-3:
        return  # the output does not depend on it
    net.zero_grad()
    leaf = x.clone().requires_grad_()
    manual_seed(student, 1)
    output = net(leaf)
    expect(output.requires_grad, "no gradient can flow back from the output: its graph was cut")
    upstream = rng.randn(*slope.shape)
    (output * upstream).sum().backward()
    parameter = leaf if name == "x" else dict(net.named_parameters()).get(name)
    grad = None if parameter is None else parameter.grad
    expect(grad is not None, f"no gradient reaches {name}")
    difference = (grad * direction).sum() - (slope * upstream).sum()
    says = f"the gradient of {name} is not the slope of the output"
    expect(difference.abs() < 0.005 * slope.norm(), says)


@pytest.mark.points(2)
def test_dropout(student):
    """In training, each hidden unit is dropped on its own at the rate; the rest are scaled up."""
    d_model, d_ff, rate = 8, 5, 0.3
    x = torch.ones(DRAWS, 3, d_model, dtype=torch.float64)

    def output(mode, dropout, *, second):
        """Return the output of a network in which each hidden unit makes one output."""
        net = student.FeedForward(d_model, d_ff, *dropout).to(torch.float64).train(mode)
        width = net.state_dict()["linear1.weight"].shape[0]
        net.load_state_dict(
            {
                "linear1.weight": torch.full((width, d_model), 1 / d_model),
                "linear1.bias": torch.full((width,), 0.5),
                "linear2.weight": torch.eye(d_model, width) * second,
                "linear2.bias": torch.arange(1.0, d_model + 1),
            },
            strict=False,
        )
        result = doubled(output_of(net, x))
        expect(result.shape == x.shape, f"the output has the shape {tuple(result.shape)}")
        return result

    rest = output(False, (), second=0)  # what does not come from the hidden units
    hidden = output(False, (), second=1) - rest
    expect(hidden[..., :d_ff].abs().min() > 0.1, "linear2.weight has no effect on the output")
    plain = output(True, (), second=1)
    assert_close(plain, rest + hidden, "the output in training with the default rate")
    seen = output(True, (rate,), second=1) - rest
    dropped = seen.abs() < hidden.abs() / 2
    expected = (hidden / (1 - rate)).masked_fill(dropped, 0.0)
    what = f"what the hidden units add to the output at rate {rate}"
    assert_close(seen, expected, what, atol=ABSOLUTE)
    dropped = dropped[..., :d_ff].flatten(1).double()
    share = dropped.mean().item()
    says = f"{share:.0%} of the hidden units are dropped, where about {rate:.0%} are expected"
    expect(abs(share - rate) < 0.06, says)
    uneven = "some hidden units are dropped more often than others, or in all sentences at once"
    expect((dropped.mean(0) - rate).abs().max() < 0.25, uneven)
    together = torch.corrcoef(dropped.T).fill_diagonal_(0).abs().max()
    expect(together < 0.5, "some hidden units of a sentence are always dropped together")
    nothing = output(True, (1.0,), second=1)
    assert_close(nothing, rest, "the output at rate 1, where all hidden units are dropped")


@pytest.mark.points(1)
def test_nothing_dropped_in_eval_mode(student, rng):
    """In eval mode nothing is dropped, whatever the rate is."""
    state = own_parameters(student, rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    without = output_of(made(student, state, 0.0), x)
    net = made(student, state, dropout=0.5)
    shape = tuple(getattr(without, "shape", x.shape))
    assert_same(output_of(net, x), without, "the output in eval mode", shape=shape)
    output_of(net.train(), x)
    what = "the output in eval mode after training"
    assert_same(output_of(net.eval(), x), without, what, shape=shape)


@pytest.mark.points(1)
def test_argument(student, rng):
    """x may be a transposed view, and is not modified."""
    net = made(student, own_parameters(student, rng))
    views = (
        rng.randn(BATCH, D_MODEL, N_TOKENS).transpose(1, 2),
        rng.randn(N_TOKENS, BATCH, D_MODEL).transpose(0, 1),
    )
    for x in views:
        plain = x.contiguous()
        for mode in (True, False):
            net.train(mode)
            output = assert_unchanged(student, net, plain, names=("x",))
        quiet = assert_unchanged(student, lambda x: output_of(net, x), plain, names=("x",))
        again = assert_unchanged(student, lambda x: output_of(net, x), x, names=("x",))
        shape = tuple(getattr(output, "shape", x.shape))
        assert_same(quiet, output, "the output without gradients", shape=shape)
        assert_same(again, output, "the output for a transposed view", shape=shape)


@pytest.mark.points(1)
def test_dtype(student, rng):
    """`net.to(dtype)` is enough to compute in another dtype; the output has the dtype of x."""
    state = own_parameters(student, rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    wide = doubled(output_of(made(student, state), x))
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        for mode, rate in ((False, 0.0), (True, 0.0), (True, 0.5)):
            net = made(student, state, rate).to(dtype).train(mode)
            output = output_of(net, x.to(dtype))
            expect(isinstance(output, Tensor), "the output is not a tensor")
            names = [str(each).removeprefix("torch.") for each in (output.dtype, dtype)]
            says = f"after net.to(torch.{names[1]}), the output for an x in {names[1]} is "
            says += names[0] + (" in training" if mode else "")
            expect(output.dtype == dtype, says)
            if not mode:
                what = f"the output in {names[1]}"
                assert_close(doubled(output), wide, what, rtol=0.1, atol=0.3)


@pytest.mark.points(1)
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch, tokens or widths."""

    def called(batch, n_tokens, d_model, d_ff):
        net = student.FeedForward(d_model, d_ff)
        x = rng.randn(batch, n_tokens, d_model, dtype=torch.float32)
        return lambda: output_of(net, x)

    small = called(2, 3, 4, 6)
    grown = {
        "sentences": (5, 3, 4, 6),
        "tokens": (2, 8, 4, 6),
        "features": (2, 3, 9, 6),
        "hidden units": (2, 3, 4, 11),
    }
    for axis, sizes in grown.items():
        large = called(*sizes)
        large()  # what is kept for later calls may be made here
        try:
            assert_vectorised(student, small, large)
        except Mismatch as mismatch:
            raise Mismatch(f"{mismatch} (only the number of {axis} grew)") from None
