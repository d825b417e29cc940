"""Hidden tests of layer norm, which decide the points.

A check of anything but the formula compares the student's answers with each other, so that one
mistake costs one check.
"""

import contextlib

import pytest
import torch

from grader.testing import (
    assert_close,
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
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, D_MODEL = 2, 5, 7


def made(code, state, *args, **kwargs):
    """Return a layer of D_MODEL features in float64 and evaluation mode, with the parameters."""
    return load_parameters(code.LayerNorm(D_MODEL, *args, **kwargs), state)


def parameters_of(rng):
    """Return random parameters by name; every other gamma is negative."""
    signs = (-1.0) ** torch.arange(D_MODEL)
    return {"gamma": (rng.randn(D_MODEL) * 0.5 + 1) * signs, "beta": rng.randn(D_MODEL)}


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The norm is written by hand, without a torch function that does all of it.

    Guards: the calls that the exercise forbids.
    """
    x = rng.randn(BATCH, N_TOKENS, D_MODEL, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.LayerNorm(D_MODEL), x))


@pytest.mark.points(1)
def test_fresh_layer(student):
    """gamma is initially ones and beta zeros: two parameters of shape (d_model,), no others."""
    # Leaves numbers in the memory that parameters get which are never filled.
    with contextlib.suppress(Exception):  # other checks report what is wrong
        output_of(student.LayerNorm(D_MODEL), torch.arange(1.0, D_MODEL + 1).view(1, 1, -1))
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
    modes = {"training": theirs.train, "eval": theirs.eval}
    for mode, switch in modes.items():
        switch()
        for shape in (*shapes, (1, N_TOKENS, D_MODEL), (1, 1, D_MODEL), (1, D_MODEL)):
            x = rng.randn(*shape) * 100 + 50
            what = f"the output in {mode} mode for an x of shape {shape}"
            assert_close(in_float64(output_of(theirs, x)), output_of(ours, x), what)
    x = rng.randn(BATCH, N_TOKENS, 1)
    found = tuple(in_float64(output_of(student.LayerNorm(1).to(torch.float64), x)).shape)
    shape = BATCH, N_TOKENS, 1
    expect(found == shape, f"the output for a single feature has shape {found}, not {shape}")


@pytest.mark.points(2)
def test_eps(student):
    """The layer uses the eps it was given, inside the square root."""
    # All means are 0 and all variances 1, over whatever axis; 40 features hide a sample's variance.
    sizes = 2, 4, 40
    x = (-1.0) ** sum(torch.meshgrid(*map(torch.arange, sizes), indexing="ij"))
    x = x.double()
    fresh = student.LayerNorm(40, 1.0).to(torch.float64).eval()
    offset = in_float64(output_of(fresh, torch.zeros_like(x)))
    for eps, size in ((1.0, 1.0), (3.0, 1.0), (1e-10, 1e-5), (0.0, 1e-4)):
        layer = student.LayerNorm(40, eps).to(torch.float64).eval()
        normalised = in_float64(output_of(layer, x * 1e4)) - offset  # eps does not count here
        scaled = in_float64(output_of(layer, x * size))
        expect(normalised.isfinite().all() and normalised.any(), "a fresh layer gives no numbers")
        expected = offset + normalised / (1 + eps / size**2) ** 0.5
        what = f"the output with eps {eps:g} for a variance of {size**2:g}"
        assert_close(scaled, expected, what, rtol=0.01)


@pytest.mark.points(1)
def test_default_eps(student, rng):
    """Without the argument, eps is 1e-5."""
    state = parameters_of(rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL) * 3e-3  # its variance is about the eps
    given = in_float64(output_of(made(student, state, eps=1e-5), x))
    output = in_float64(output_of(made(student, state), x))
    assert_same(output, given, "the output with the default eps", shape=tuple(x.shape))


@pytest.mark.points(1)
def test_large_offset(student, reference, rng):
    """Features around a million are normalised as accurately as features around 0."""
    # Whole numbers whose sum is exact in float32: code that subtracts first loses nothing.
    x = torch.cat([rng.randint(-6, 7, BATCH, 3, 6), torch.tensor([-5, 4]).expand(BATCH, 3, 2)], -1)
    x = x.float()
    layer = student.LayerNorm(8).eval()
    near, far = output_of(layer, x), output_of(layer, x + 2.0**20)
    assert_same(far, near, "the output for features around a million", shape=(BATCH, 3, 8))
    if torch.allclose(in_float64(near), reference.LayerNorm(8)(x).double(), atol=1e-4):
        apart = output_of(layer, x + 2.0**20 * torch.tensor([[1.0], [-1.0], [0.0]]))
        what = "the output for tokens whose features are around a million, minus a million and 0"
        assert_same(apart, near, what, shape=(BATCH, 3, 8))


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach x, gamma and beta, and are the slopes of the output."""
    state = parameters_of(rng)
    theirs, ours = made(student, state), made(reference, state)
    assert_slopes(student, theirs, ours, {"x": rng.randn(BATCH, N_TOKENS, D_MODEL)}, rng=rng)


@pytest.mark.points(1)
def test_equal_features(student, reference, rng):
    """A token whose features are all equal gives beta, and its gradient is finite."""
    state = parameters_of(rng)
    layer = made(student, state)
    # Halves: their mean is exact, so that the variance is exactly 0.
    x = (rng.randint(-9, 10, BATCH, N_TOKENS, 1) / 2.0).double().repeat(1, 1, D_MODEL)
    # A layer may scale beta, which other checks see: what counts is that x has no effect.
    expected = in_float64(output_of(layer, torch.zeros_like(x)))
    shape, what = tuple(x.shape), "the output for equal features"
    assert_same(in_float64(output_of(layer, x)), expected, what, shape=shape)
    x.requires_grad_()
    output = layer(x)
    expect(output.requires_grad, "no gradient can flow back from the output: its graph was cut")
    (output * rng.randn(*shape)).sum().backward()
    expect(x.grad is not None, "no gradient reaches x")
    expect(x.grad.isfinite().all(), "for equal features the gradient of x is not finite")
    # A single feature equals all features of its token.
    layer = load_parameters(student.LayerNorm(1), {n: state[n][:1] for n in state})
    x = rng.randn(BATCH, N_TOKENS, 1)
    expected = in_float64(output_of(layer, torch.zeros_like(x)))
    usual = rng.randn(BATCH, N_TOKENS, D_MODEL)
    found, right = (output_of(made(code, state), usual) for code in (student, reference))
    # Code that divides by one less has lost points already.
    if expected.isfinite().all() or torch.allclose(in_float64(found), right, atol=1e-5):
        what = "the output for a single feature"
        assert_same(in_float64(output_of(layer, x)), expected, what, shape=tuple(x.shape))


@pytest.mark.points(1)
def test_argument(student, rng):
    """x may be a transposed view, and is not modified."""
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    assert_takes_views(student, made(student, parameters_of(rng)), x)


@pytest.mark.points(1)
def test_dtype(student, rng):
    """`layer.to(dtype)` is enough to compute in another dtype; the output has the dtype of x."""
    state = parameters_of(rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    for mode in (False, True):
        layer = made(student, state).train(mode)
        wide = in_float64(output_of(layer, x))
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            name = str(dtype).removeprefix("torch.")
            output = output_of(layer.to(dtype), x.to(dtype))
            assert_dtype(output, dtype, f"after layer.to(torch.{name}), the output for such an x")
            assert_close(output.double(), wide, f"the output in {name}", rtol=0.1, atol=0.1)


@pytest.mark.points(1)
def test_no_python_loops(student, reference, rng):
    """No Python loop runs over batch, tokens or features."""

    def called(batch=2, n_tokens=3, d_model=6):
        x, names = rng.randn(batch, n_tokens, d_model), ("gamma", "beta")
        state = {name: rng.randn(d_model) for name in names}
        return lambda code: output_of(load_parameters(code.LayerNorm(d_model), state), x)

    grown = {
        "sentences": {"batch": (105, 211)},
        "tokens": {"n_tokens": (108, 217)},
        "features": {"d_model": (110, 222)},
    }
    assert_vectorised(student, called, grown, reference)
