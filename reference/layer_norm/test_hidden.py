"""Hidden tests of layer norm, which decide the points.

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
    output_of,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, D_MODEL = 2, 5, 7
ABSOLUTE = 1e-5  # code that computes in float32 and converts back is right
STEP = 1e-3  # for slopes


def made(code, state, *args, **kwargs):
    """Return a layer of D_MODEL features in float64 and evaluation mode, with the parameters."""
    layer = code.LayerNorm(D_MODEL, *args, **kwargs).to(torch.float64)
    layer.load_state_dict(fitting(layer, state), strict=False)
    return layer.eval()


def fitting(layer, state):
    """Return the parameters in the shapes that the layer has: another check asks for the shapes."""
    shapes = {name: value.shape for name, value in layer.state_dict().items()}
    return {
        name: value.flatten()[: shapes[name].numel()].view(shapes[name])
        for name, value in state.items()
        if name in shapes and shapes[name].numel() <= value.numel()
    }


def parameters_of(rng):
    """Return random parameters by name."""
    return {"gamma": rng.randn(D_MODEL) * 0.5 + 1, "beta": rng.randn(D_MODEL)}


def doubled(output):
    """Return an output in float64: another check asks for its dtype."""
    expect(isinstance(output, Tensor), "the output is not a tensor")
    return output.double()


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The norm is written by hand, without a torch function that does all of it."""
    x = rng.randn(BATCH, N_TOKENS, D_MODEL, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.LayerNorm(D_MODEL), x))


@pytest.mark.points(1)
def test_fresh_layer(student):
    """gamma is initially ones and beta zeros: two parameters of shape (d_model,), no others."""
    layer = student.LayerNorm(D_MODEL)
    found = dict(layer.named_parameters())
    if set(found) != {"gamma", "beta"}:
        expect(
            False,
            f"the parameters are {', '.join(found) or 'none'}, where gamma and beta are expected "
            f"(the state_dict holds {', '.join(layer.state_dict()) or 'nothing'})",
        )
    assert_close(found["gamma"], torch.ones(D_MODEL), "gamma of a fresh layer")
    assert_close(found["beta"], torch.zeros(D_MODEL), "beta of a fresh layer")


@pytest.mark.points(3)
def test_formula(student, reference, rng):
    """Each token is normalised over its own features, in any mode and for any leading axes."""
    # The features are so large that the default eps does not show.
    state = parameters_of(rng)
    theirs, ours = made(student, state), made(reference, state)
    shapes = ((4, D_MODEL), (BATCH, N_TOKENS, D_MODEL), (2, 3, 4, D_MODEL), (3, 1, D_MODEL))
    for shape in (*shapes, (1, N_TOKENS, D_MODEL), (1, 1, D_MODEL), (1, D_MODEL)):
        x = rng.randn(*shape) * 100 + 50
        expected = output_of(ours, x)
        for mode in ("eval", "training"):
            output = output_of(theirs.train(mode == "training"), x)
            what = f"the output in {mode} mode for an x of shape {shape}"
            assert_close(doubled(output), expected, what, atol=ABSOLUTE)
    again = output_of(theirs.eval(), x)
    assert_close(doubled(again), expected, "the output in eval mode after training", atol=ABSOLUTE)


@pytest.mark.points(2)
def test_eps(student):
    """The layer uses the eps it was given, inside the square root."""
    # All means are 0 and all variances 1, over whatever axis; 40 features hide a sample's variance.
    sizes = 2, 4, 40
    x = (-1.0) ** sum(torch.meshgrid(*map(torch.arange, sizes), indexing="ij"))
    x = x.double()
    for eps in (1.0, 3.0):
        layer = student.LayerNorm(40, eps).to(torch.float64).eval()
        offset = doubled(output_of(layer, torch.zeros_like(x)))
        normalised = doubled(output_of(layer, x * 1e4)) - offset  # eps does not count here
        expect(normalised.isfinite().all() and normalised.any(), "a fresh layer gives no numbers")
        expected = offset + normalised / (1 + eps) ** 0.5
        what = f"the output with eps {eps:g} for a variance of 1"
        assert_close(doubled(output_of(layer, x)), expected, what, rtol=0.01, atol=ABSOLUTE)


@pytest.mark.points(1)
def test_default_eps(student, rng):
    """Without the argument, eps is 1e-5."""
    state = parameters_of(rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL) * 3e-3  # its variance is about the eps
    given = doubled(output_of(made(student, state, eps=1e-5), x))
    output = doubled(output_of(made(student, state), x))
    assert_same(output, given, "the output with the default eps", shape=tuple(x.shape))


@pytest.mark.points(1)
def test_large_offset(student, rng):
    """Features around a million are normalised as accurately as features around 0."""
    # Whole numbers whose sum is exact in float32: code that subtracts first loses nothing.
    x = torch.cat([rng.randint(-6, 7, BATCH, 3, 6), torch.tensor([-5, 4]).expand(BATCH, 3, 2)], -1)
    x = x.float()
    layer = student.LayerNorm(8).eval()
    near, far = output_of(layer, x), output_of(layer, x + 2.0**20)
    assert_same(far, near, "the output for features around a million", shape=(BATCH, 3, 8))


@pytest.mark.points(1)
def test_gradients(student, rng):
    """Gradients reach x, gamma and beta, and are the slopes of the output."""
    state = parameters_of(rng)
    layer = made(student, state)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    for mode in (False, True):
        layer.train(mode)
        for name, value in {"x": x, **state}.items():
            assert_slope(layer, name, value, x, state, rng)


def assert_slope(layer, name, value, x, state, rng):
    """Raise `Mismatch` unless the gradient of `name` predicts how the output changes."""
    direction = rng.randn(*value.shape)

    def moved(step):
        if name == "x":
            return doubled(output_of(layer, x + step * direction))
        layer.load_state_dict(fitting(layer, {name: value + step * direction}), strict=False)
        return doubled(output_of(layer, x))

    slope = (moved(STEP) - moved(-STEP)) / (2 * STEP)
    layer.load_state_dict(fitting(layer, state), strict=False)
    expect(slope.isfinite().all(), "the output is not finite")
    if slope.abs().max() < STEP:
        return  # the output does not depend on it
    layer.zero_grad()
    leaf = x.clone().requires_grad_()
    output = layer(leaf)
    expect(output.requires_grad, "no gradient can flow back from the output: its graph was cut")
    upstream = rng.randn(*slope.shape)
    (doubled(output) * upstream).sum().backward()
    parameter = leaf if name == "x" else dict(layer.named_parameters()).get(name)
    grad = None if parameter is None else parameter.grad
    expect(grad is not None, f"no gradient reaches {name}")
    if grad.shape != direction.shape:  # another check asks for the shapes
        direction = direction.flatten()[: grad.numel()].view(grad.shape)
    difference = (grad * direction).sum() - (slope * upstream).sum()
    says = f"the gradient of {name} is not the slope of the output"
    expect(difference.abs() < 0.005 * slope.norm(), says)


@pytest.mark.points(1)
def test_equal_features(student, rng):
    """A token whose features are all equal gives beta, and its gradient is finite."""
    state = parameters_of(rng)
    layer = made(student, state)
    # Halves: their mean is exact, so that the variance is exactly 0.
    x = (rng.randint(-9, 10, BATCH, N_TOKENS, 1) / 2.0).double().repeat(1, 1, D_MODEL)
    # A layer may scale beta, which other checks see: what counts is that x has no effect.
    expected = doubled(output_of(layer, torch.zeros_like(x)))
    shape, what = tuple(x.shape), "the output for equal features"
    assert_same(doubled(output_of(layer, x)), expected, what, shape=shape)
    x.requires_grad_()
    output = layer(x)
    expect(output.requires_grad, "no gradient can flow back from the output: its graph was cut")
    (output * rng.randn(*shape)).sum().backward()
    expect(x.grad is not None, "no gradient reaches x")
    expect(x.grad.isfinite().all(), "for equal features the gradient of x is not finite")


@pytest.mark.points(1)
def test_argument(student, rng):
    """x may be a transposed view, and is not modified."""
    layer = made(student, parameters_of(rng))
    views = (
        rng.randn(BATCH, D_MODEL, N_TOKENS).transpose(1, 2),
        rng.randn(N_TOKENS, BATCH, D_MODEL).transpose(0, 1),
    )
    for x in views:
        plain = x.contiguous()
        for mode in (True, False):
            layer.train(mode)
            output = assert_unchanged(student, layer, plain, names=("x",))
        shape = tuple(x.shape)
        quiet = assert_unchanged(student, lambda x: output_of(layer, x), plain, names=("x",))
        again = assert_unchanged(student, lambda x: output_of(layer, x), x, names=("x",))
        assert_same(quiet, output, "the output without gradients", shape=shape)
        assert_same(again, output, "the output for a transposed view", shape=shape)


@pytest.mark.points(1)
def test_dtype(student, rng):
    """`layer.to(dtype)` is enough to compute in another dtype; the output has the dtype of x."""
    state = parameters_of(rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    for mode in (False, True):
        wide = output_of(made(student, state).train(mode), x)
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            layer = made(student, state).to(dtype).train(mode)
            output = output_of(layer, x.to(dtype))
            expect(isinstance(output, Tensor), "the output is not a tensor")
            names = [str(each).removeprefix("torch.") for each in (output.dtype, dtype)]
            says = f"after layer.to(torch.{names[1]}), the output for an x in {names[1]} is "
            expect(output.dtype == dtype, says + names[0])
            what = f"the output in {names[1]}"
            assert_close(doubled(output), doubled(wide), what, rtol=0.1, atol=0.1)


@pytest.mark.points(1)
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch, tokens or features."""

    def called(batch, n_tokens, d_model):
        layer = student.LayerNorm(d_model)
        x = rng.randn(batch, n_tokens, d_model, dtype=torch.float32)
        return lambda: output_of(layer, x)

    small = called(2, 3, 6)
    for axis, sizes in (("sentences", (5, 3, 6)), ("tokens", (2, 8, 6)), ("features", (2, 3, 11))):
        large = called(*sizes)
        large()  # what is kept for later calls may be made here
        try:
            assert_vectorised(student, small, large)
        except Mismatch as mismatch:
            raise Mismatch(f"{mismatch} (only the number of {axis} grew)") from None
