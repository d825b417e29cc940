"""Public tests of layer norm, which students can read and run."""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
)

pytestmark = pytest.mark.needs("test_by_hand")


def called(student, rng, batch=2, n_tokens=3, d_model=7):
    """Return a call of a layer of its own on random tokens."""
    x = rng.randn(batch, n_tokens, d_model, dtype=torch.float32)
    return lambda: output_of(student.LayerNorm(d_model), x)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the norm."""
    assert_written_by_hand(student, called(student, rng, 2, 3, 7))


@pytest.mark.points(2)
def test_worked_example(student):
    """The worked example: a fresh layer with eps 0.5, then with gamma and beta."""
    layer = student.LayerNorm(4, eps=0.5)
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    x_hat = torch.tensor([[-1.0, -0.5, 0.0, 1.5]])
    assert_close(output_of(layer, x), x_hat, "the output of a fresh layer")
    gamma, beta = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([10.0, 20.0, 30.0, 40.0])
    load_parameters(layer, {"gamma": gamma, "beta": beta}, dtype=torch.float32)
    assert_close(output_of(layer, x), torch.tensor([[9.0, 19.0, 30.0, 46.0]]))


@pytest.mark.points(1)
def test_parameters(student):
    """gamma is initially ones and beta zeros, and there are no other parameters."""
    found = dict(student.LayerNorm(7).named_parameters())
    expect(set(found) == {"gamma", "beta"}, f"the parameters are {', '.join(found) or 'none'}")
    assert_close(found["gamma"], torch.ones(7), "gamma of a fresh layer")
    assert_close(found["beta"], torch.zeros(7), "beta of a fresh layer")


@pytest.mark.points(2)
def test_mean_and_variance(student, rng):
    """The output features of every token have mean 0 and variance 1, whatever their offset was."""
    layer = student.LayerNorm(7, eps=1e-9).to(torch.float64)
    output = output_of(layer, rng.randn(2, 5, 7) * 3 + 1000)
    zeros = torch.zeros(2, 5, dtype=torch.float64)
    assert_close(output.mean(dim=-1), zeros, "the mean of a token", atol=1e-7)
    assert_close(output.var(dim=-1, correction=0), zeros + 1, "the variance of a token")


@pytest.mark.points(1)
def test_each_token_alone(student, rng):
    """Changing one token changes no other token's output, for any number of leading axes."""
    layer = student.LayerNorm(7).to(torch.float64)
    for shape in ((3, 7), (2, 5, 7), (2, 3, 5, 7)):
        x = rng.randn(*shape)
        changed = x.clone()
        changed.view(-1, 7)[-1] += rng.randn(7)
        before, after = output_of(layer, x).view(-1, 7), output_of(layer, changed).view(-1, 7)
        assert_close(after[:-1], before[:-1], "the output of a token that did not change")


@pytest.mark.points(2)
def test_equal_features(student):
    """A token whose features are all equal gives beta, and a finite gradient."""
    layer = student.LayerNorm(7)
    x = torch.full((2, 3, 7), 2.0, requires_grad=True)
    output = layer(x)
    assert_close(output, torch.zeros(2, 3, 7))
    output.pow(3).sum().backward()
    expect(x.grad is not None, "x gets no gradient at all")
    expect(x.grad.isfinite().all(), "the gradient of x is not finite")


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences, tokens or features."""
    more = {"sentences": {"batch": (8, 17)}, "tokens": {"n_tokens": (9, 19)}}
    more["features"] = {"d_model": (12, 25)}
    assert_vectorised(student, functools.partial(called, student, rng), more)


@pytest.mark.points(0)
def test_far_from_zero(student, rng):
    """Features around a hundred thousand give what the same features around 0 give."""
    layer = student.LayerNorm(8)
    x = rng.randint(-40, 40, 4, 8).float() / 8  # such sums are exact in float32
    assert_close(output_of(layer, x + 2**17), output_of(layer, x), "the output", atol=1e-3)


@pytest.mark.points(0)
def test_dtype(student, rng):
    """The layer works in bfloat16."""
    x = rng.randn(2, 6, 7, dtype=torch.bfloat16)
    assert_dtype(output_of(student.LayerNorm(7).bfloat16(), x), torch.bfloat16, "the output")
