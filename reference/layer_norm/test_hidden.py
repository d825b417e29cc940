"""Hidden tests of layer norm, which decide the points."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_same_gradients,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    output_of,
    twins,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, D_MODEL = 2, 5, 7
DEFAULT_EPS = 1e-5
SMALL = 0.3  # at this input scale, the position of eps matters; at scale 1 it hardly does


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
def test_last_axis(student, reference, rng):
    """Each token is normalised over its features, whether x has two axes or four."""
    theirs, ours = twins(student.LayerNorm, reference.LayerNorm, D_MODEL, rng=rng)
    for shape in ((1, D_MODEL), (2, 3, 5, D_MODEL)):
        x = rng.randn(*shape) * SMALL
        assert_close(output_of(theirs, x), output_of(ours, x))


@pytest.mark.points(2)
def test_eps(student, reference, rng):
    """The layer uses the eps it was given, inside the square root."""
    theirs, ours = twins(student.LayerNorm, reference.LayerNorm, D_MODEL, eps=0.1, rng=rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL) * SMALL
    assert_close(output_of(theirs, x), output_of(ours, x))


@pytest.mark.points(1)
def test_large_offset(student, reference, rng):
    """Features around a million are normalised as accurately as features around 0."""
    theirs, ours = twins(student.LayerNorm, reference.LayerNorm, D_MODEL, eps=DEFAULT_EPS, rng=rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL) * SMALL + 1e6
    assert_close(output_of(theirs, x), output_of(ours, x), rtol=1e-5, atol=1e-6)


@pytest.mark.points(2)
def test_gradients(student, reference, rng):
    """Gradients match those of the formula, and stay finite if a token's features are equal."""
    theirs, ours = twins(student.LayerNorm, reference.LayerNorm, D_MODEL, eps=DEFAULT_EPS, rng=rng)
    halves = rng.randint(-9, 10, 1, N_TOKENS, 1) / 2.0  # their mean is exact, so the variance is 0
    x = rng.randn(1, N_TOKENS, D_MODEL) * SMALL
    x = torch.cat([x, halves.double().repeat(1, 1, D_MODEL)])
    assert_same_gradients(theirs, ours, x, names=("x",))


@pytest.mark.points(3)
@pytest.mark.needs("test_eps")
def test_argument(student, reference, rng):
    """x may be a transposed bfloat16 view; it is not modified, and the output has its dtype."""
    dtype = torch.bfloat16
    theirs, ours = twins(student.LayerNorm, reference.LayerNorm, D_MODEL, rng=rng, dtype=dtype)
    x = rng.randn(BATCH, D_MODEL, N_TOKENS, dtype=dtype).transpose(1, 2) + 1
    output = assert_unchanged(student, lambda x: output_of(theirs, x), x, names=("x",))
    assert_close(output, output_of(ours, x), rtol=5e-2, atol=5e-2)


@pytest.mark.points(1)
@pytest.mark.needs("test_eps")
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch, tokens or features."""
    small, large = student.LayerNorm(7), student.LayerNorm(11)
    x, longer = rng.randn(2, 3, 7, dtype=torch.float32), rng.randn(4, 5, 11, dtype=torch.float32)
    assert_vectorised(student, lambda: output_of(small, x), lambda: output_of(large, longer))
