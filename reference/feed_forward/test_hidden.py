"""Hidden tests of the feed-forward network, which decide the points.

A check of anything but the formula compares the student's answers with each other, so that one
mistake costs one check.
"""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_same,
    assert_slopes,
    assert_takes_views,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    output_of,
    parameter_shapes,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, D_MODEL, D_FF = 2, 5, 4, 7
DRAWS = 200  # sentences of which the hidden units are dropped


def made(code, state, *args, sizes=(D_MODEL, D_FF), **kwargs):
    """Return a network in float64 and evaluation mode, with those of the parameters that fit."""
    return load_parameters(code.FeedForward(*sizes, *args, **kwargs), state)


def parameters_of(rng, d_model=D_MODEL, d_ff=D_FF):
    """Return random parameters by name."""
    return {
        "linear1.weight": rng.randn(d_ff, d_model),
        "linear1.bias": rng.randn(d_ff),
        "linear2.weight": rng.randn(d_model, d_ff),
        "linear2.bias": rng.randn(d_model),
    }


def own_parameters(student, rng):
    """Return random values for those parameters of the student's that are asked for."""
    shapes = parameter_shapes(student.FeedForward(D_MODEL, D_FF))
    asked = ("linear1.", "linear2.")  # others keep their values
    return {name: rng.randn(*shape) for name, shape in shapes.items() if name.startswith(asked)}


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
    found = parameter_shapes(student.FeedForward(D_MODEL, D_FF))
    wanted = {name: tuple(value.shape) for name, value in parameters_of(rng).items()}
    expect(found == wanted, f"the parameters are {found or 'none'}, not {wanted}")


@pytest.mark.points(3)
def test_formula(student, reference, rng):
    """The output is linear2(relu(linear1(x))) at each position, for any leading axes."""
    state = parameters_of(rng)
    theirs, ours = made(student, state), made(reference, state)
    leading = ((4,), (BATCH, N_TOKENS), (2, 3, 5), (3, 1), (1, N_TOKENS), (1, 1), (1,))
    for axes, scale in zip(leading, (1.0, 30.0, 1e6, 1.0, 1.0, 1.0, 1.0)):
        x = rng.randn(*axes, D_MODEL) * scale
        what = f"the output for an x of shape {tuple(x.shape)}"
        assert_close(in_float64(output_of(theirs, x)), output_of(ours, x), what)
    for sizes in ((1, 1), (5, 2)):
        state = parameters_of(rng, *sizes)
        theirs, ours = made(student, state, sizes=sizes), made(reference, state, sizes=sizes)
        x = rng.randn(BATCH, N_TOKENS, sizes[0])
        what = "the output for {} features and {} hidden units".format(*sizes)
        assert_close(in_float64(output_of(theirs, x)), output_of(ours, x), what)


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach x and the parameters, and are the slopes of the output."""
    state = parameters_of(rng)
    theirs, ours = (made(code, state, 0.3) for code in (student, reference))
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    # Tiny steps, since a ReLU has a corner.
    assert_slopes(student, theirs, ours, {"x": x}, rng=rng, step=1e-8)


@pytest.mark.points(2)
def test_dropout(student, rng):
    """In training, each hidden unit is dropped on its own at the rate; the rest are scaled up."""
    d_model, d_ff, rate = 8, 5, 0.39
    x = torch.ones(DRAWS, 3, d_model, dtype=torch.float64)

    def output(mode, dropout, *, second, x=x):
        """Return the output of a network in which each hidden unit makes one output."""
        net = student.FeedForward(d_model, d_ff, *dropout)
        width, *_ = parameter_shapes(net).get("linear1.bias", (d_ff,))
        state = {
            "linear1.weight": torch.full((width, d_model), 1 / d_model),
            "linear1.bias": torch.full((width,), 0.5),
            "linear2.weight": torch.eye(d_model, width) * second,
            "linear2.bias": torch.arange(1.0, d_model + 1),
        }
        result = in_float64(output_of(load_parameters(net, state).train(mode), x))
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
    assert_close(seen, expected, what)
    assert_dropped(dropped[..., :d_ff], rate, "hidden units")
    net = made(student, own_parameters(student, rng), rate)
    output_of(net, rng.randn(BATCH, 3, D_MODEL))  # a call in eval mode ends nothing
    assert_drawn_anew(net.train(), rng.randn(DRAWS, 3, D_MODEL), what="hidden units")
    few = (output(True, (0.008,), second=1) - rest).abs() < hidden.abs() / 2
    expect(few[..., :d_ff].any(), "no hidden unit is ever dropped at a rate of 0.008")
    many = x.repeat(7, 1, 1)  # some 20,000 units, of which a rate of 0.999 keeps one
    for whole in (1.0, 1):
        nothing = output(True, (whole,), second=1, x=many)
        right = rest[:1].expand_as(nothing)
        assert_close(nothing, right, "the output at rate 1, where all hidden units are dropped")


@pytest.mark.points(1)
def test_nothing_dropped_in_eval_mode(student, rng):
    """In eval mode nothing is dropped, whatever the rate is."""
    state = own_parameters(student, rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    without = output_of(made(student, state, 0.0), x)
    for rate in (0.5, 1.0):
        net = made(student, state, dropout=rate)
        assert_same(output_of(net, x), without, "the output in eval mode")
        output_of(net.train(), x)
        assert_same(output_of(net.eval(), x), without, "the output in eval mode after training")


@pytest.mark.points(1)
def test_argument(student, rng):
    """x may be a transposed view, and is not modified."""
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    assert_takes_views(student, made(student, own_parameters(student, rng)), x)


@pytest.mark.points(1)
def test_dtype(student, rng):
    """`net.to(dtype)` is enough to compute in another dtype; the output has the dtype of x."""
    state = own_parameters(student, rng)
    net, dropping = made(student, state), made(student, state, 0.5).train()
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    output = output_of(student.FeedForward(D_MODEL, D_FF), x.float())
    assert_dtype(output, torch.float32, "the output of a new network for an x in float32")
    wide = in_float64(output_of(net, x))
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        shown = f"after net.to(torch.{name}), the output for such an x"
        output = output_of(net.to(dtype), x.to(dtype))
        assert_dtype(output, dtype, shown)
        assert_close(output.double(), wide, f"the output in {name}", rtol=0.1, atol=0.3)
        output = output_of(dropping.to(dtype), x.to(dtype))
        assert_dtype(output, dtype, f"{shown} in training")
    output = output_of(net.train(), x.to(torch.bfloat16))
    assert_dtype(output, torch.bfloat16, f"{shown} in training without dropout")


@pytest.mark.points(1)
def test_no_python_loops(student, reference, rng):
    """No Python loop runs over batch, tokens or widths."""

    def called(batch=2, n_tokens=3, d_model=4, d_ff=6):
        x, state = rng.randn(batch, n_tokens, d_model), parameters_of(rng, d_model, d_ff)
        return lambda code: output_of(made(code, state, sizes=(d_model, d_ff)), x)

    grown = {
        "sentences": {"batch": (105, 211)},
        "tokens": {"n_tokens": (108, 217)},
        "features": {"d_model": (110, 222)},
        "hidden units": {"d_ff": (113, 227)},
    }
    assert_vectorised(student, called, grown, reference)
