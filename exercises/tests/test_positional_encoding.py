"""Public tests of positional encoding, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close, assert_refused, expect, output_of, parameter_shapes

TABLE = [
    [0.0000, 1.0000, 0.0000, 1.0000],
    [0.8415, 0.5403, 0.0998, 0.9950],
    [0.9093, -0.4161, 0.1987, 0.9801],
    [0.1411, -0.9900, 0.2955, 0.9553],
]


@pytest.mark.points(3)
def test_example(student):
    """The table of the statement comes out."""
    found = student.sinusoidal(4, 4, base=100.0)
    assert_close(found, torch.tensor(TABLE), "sinusoidal(4, 4, base=100.0)", atol=1e-4)


@pytest.mark.points(1)
def test_odd_width(student):
    """With an odd d_model, the last column is a sine."""
    found = student.sinusoidal(4, 1)
    wanted = torch.tensor([[row[0]] for row in TABLE])
    assert_close(found, wanted, "sinusoidal(4, 1)", atol=1e-4)


@pytest.mark.points(2)
def test_module(student):
    """The module adds the encoding to each token, and has no parameters."""
    encode = student.PositionalEncoding(2, 5)
    output = output_of(encode, torch.ones(3, 4, 2))
    wanted = 1 + torch.tensor(TABLE)[:, :2].expand(3, 4, 2)
    assert_close(output, wanted, "the output for ones", atol=1e-4)
    found = parameter_shapes(encode)
    expect(not found, f"the module has the parameters {found}")
    too_many = torch.ones(1, 6, 2)
    shown = "PositionalEncoding(2, 5) with 6 tokens"
    assert_refused(student, lambda: output_of(encode, too_many), shown)


@pytest.mark.points(2)
def test_gap(student):
    """The gap of the encoding itself is the one of the statement."""
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])  # (batch, n_tokens, d_model)
    encode = student.PositionalEncoding(2, 3)
    gap = student.permutation_gap(encode, x, torch.tensor([1, 2, 0]))
    expect(abs(float(gap) - 1.4161) < 1e-4, f"the gap is {float(gap):.4f}, not 1.4161")
