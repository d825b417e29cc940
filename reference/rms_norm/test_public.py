"""Public tests of RMS norm, which students can read and run."""

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

pytestmark = pytest.mark.needs("test_written_by_hand")


def called(student, rng, batch=2, n_tokens=3, d_model=7):
    """Return a call of a layer of its own on random tokens."""
    x = rng.randn(batch, n_tokens, d_model, dtype=torch.float32)
    return lambda: output_of(student.RMSNorm(d_model), x)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """No function of torch computes the norm."""
    assert_written_by_hand(student, called(student, rng))


@pytest.mark.points(3)
def test_worked_example(student):
    """The worked example: a new layer with eps 3.5, then with gamma."""
    layer = student.RMSNorm(4, eps=3.5)
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    assert_close(output_of(layer, x), torch.tensor([[0.25, 0.5, 0.75, 1.5]]))
    load_parameters(layer, {"gamma": torch.tensor([1.0, 2.0, 3.0, 4.0])}, dtype=torch.float32)
    assert_close(output_of(layer, x), torch.tensor([[0.25, 1.0, 2.25, 6.0]]))


@pytest.mark.points(1)
def test_parameters(student):
    """gamma is initially ones, and there are no other parameters."""
    found = dict(student.RMSNorm(7).named_parameters())
    expect(set(found) == {"gamma"}, f"the parameters are {', '.join(found) or 'none'}")
    assert_close(found["gamma"], torch.ones(7), "gamma of a new layer")


@pytest.mark.points(2)
def test_half_precision(student):
    """Features of 300 in float16 give ones; bfloat16 comes out of a layer in float32."""
    output = output_of(student.RMSNorm(7).half(), torch.full((2, 3, 7), 300, dtype=torch.float16))
    assert_close(output.float(), torch.ones(2, 3, 7), "the output for features of 300", atol=2e-3)
    x = torch.ones(2, 3, 7, dtype=torch.bfloat16)
    assert_dtype(output_of(student.RMSNorm(7), x), torch.bfloat16, "the output")


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences, tokens or features."""
    more = {"sentences": {"batch": (8, 17)}, "tokens": {"n_tokens": (9, 19)}}
    more["features"] = {"d_model": (12, 25)}
    assert_vectorised(student, lambda **sizes: called(student, rng, **sizes), more)
