"""Public tests of positional encoding, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
    assert_moves,
    assert_refused,
    assert_vectorised,
    expect,
    output_of,
    parameter_shapes,
)

TABLE = [
    [0.0000, 1.0000, 0.0000, 1.0000],
    [0.8415, 0.5403, 0.0998, 0.9950],
    [0.9093, -0.4161, 0.1987, 0.9801],
    [0.1411, -0.9900, 0.2955, 0.9553],
]


@pytest.mark.points(5)
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


@pytest.mark.points(3)
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


@pytest.mark.points(3)
def test_gap(student):
    """The gap of the encoding itself is the one of the statement."""
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])  # (batch, n_tokens, d_model)
    encode = student.PositionalEncoding(2, 3)
    gap = student.permutation_gap(encode, x, torch.tensor([1, 2, 0]))
    expect(abs(float(gap) - 1.4161) < 1e-4, f"the gap is {float(gap):.4f}, not 1.4161")


@pytest.mark.points(0)
@pytest.mark.needs("test_example", "test_module", "test_gap")
def test_whole_tensors(student, rng):
    """No Python loop runs over positions, columns, sentences or tokens."""

    def called(batch=2, n_tokens=4, d_model=6):
        x = rng.randn(batch, n_tokens, d_model).to(torch.float32)

        def call():
            student.sinusoidal(n_tokens + 1, d_model)
            encode = student.PositionalEncoding(d_model, n_tokens)
            output_of(encode, x)
            student.permutation_gap(encode, x, torch.arange(n_tokens))

        return call

    larger = {"sentences": {"batch": (7, 15)}, "tokens": {"n_tokens": (11, 25)}}
    assert_vectorised(student, called, {**larger, "columns": {"d_model": (14, 30)}})


@pytest.mark.points(0)
@pytest.mark.needs("test_module")
def test_dropout(student):
    """In training, each number of the sum is dropped on its own; in evaluation, none is."""
    encode, x = student.PositionalEncoding(4, 3, 0.4), torch.full((300, 3, 4), 2.0)
    plain = output_of(student.PositionalEncoding(4, 3), x)
    assert_close(output_of(encode.eval(), x), plain, "the output in evaluation mode")
    output = output_of(encode.train(), x)
    dropped = output == 0
    kept = (plain / 0.6).masked_fill(dropped, 0.0)
    assert_close(output, kept, "the output in training")
    assert_dropped(dropped, 0.4, "numbers")


@pytest.mark.points(0)
@pytest.mark.needs("test_module")
def test_dtype_and_device(student, rng):
    """The module works in bfloat16 and on another device, and its state_dict is empty."""
    saved = list(student.PositionalEncoding(6, 5).state_dict())
    expect(not saved, f"state_dict has {', '.join(saved)}")
    x = rng.randn(2, 4, 6)
    output = output_of(student.PositionalEncoding(6, 5).to(torch.bfloat16), x.to(torch.bfloat16))
    assert_dtype(output, torch.bfloat16, "the output for bfloat16")
    assert_moves(lambda: student.PositionalEncoding(6, 5, 0.5), x.to(torch.float32))
