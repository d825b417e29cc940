"""Public tests, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_vectorised,
    assert_weights_dropped,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
    parameter_shapes,
)


def example():
    """Return the queries, keys and values of the statement's example."""
    queries = [[[1.0, 2.0]]]  # (batch, n_queries, d_query)
    keys = [[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]]
    values = [[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]]  # (batch, n_keys, d_value)
    return [torch.tensor(numbers, dtype=torch.float64) for numbers in (queries, keys, values)]


def with_weights(student):
    """Return a module with the example's M."""
    state = {"M": torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, -1.0]])}
    return load_parameters(student.BilinearAttention(2, 4, 0.0), state)


def draw(rng, batch=2, n_queries=3, n_keys=4):
    """Return random queries, keys and values."""
    queries, keys = rng.randn(batch, n_queries, 2), rng.randn(batch, n_keys, 3)
    return queries, keys, rng.randn(batch, n_keys, 5)  # (batch, n_keys, d_value)


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    assert_written_by_hand(student, lambda: with_weights(student)(*example()))


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_parameters(student):
    """M is the only parameter."""
    found = parameter_shapes(student.BilinearAttention(4, 3, 0.0))
    expect(found == {"M": (4, 3)}, f"the parameters are {found}, not M (4, 3)")


@pytest.mark.points(4)
@pytest.mark.needs("test_written_by_hand")
def test_example(student):
    """The example of the statement comes out."""
    expected = torch.tensor([[[0.3709, 0.9812]]], dtype=torch.float64)
    assert_close(output_of(with_weights(student), *example()), expected, atol=1e-4)


@pytest.mark.points(3)
@pytest.mark.needs("test_written_by_hand")
def test_lengths(student):
    """With a length of 2, the third key is not attended to."""
    expected = torch.tensor([[[0.1824, 0.8176]]], dtype=torch.float64)
    output = output_of(with_weights(student), *example(), torch.tensor([2]))
    assert_close(output, expected, atol=1e-4)


@pytest.mark.points(0)
@pytest.mark.needs("test_example")
def test_whole_tensors(student, rng):
    """No Python loop runs over batch items, queries or keys."""

    def called(**sizes):
        inputs = draw(rng, **sizes)
        return lambda: output_of(student.BilinearAttention(2, 3, 0.0).to(torch.float64), *inputs)

    larger = {"batch items": {"batch": (7, 15)}, "queries": {"n_queries": (10, 23)}}
    assert_vectorised(student, called, {**larger, "keys": {"n_keys": (13, 27)}})


@pytest.mark.points(0)
@pytest.mark.needs("test_example")
def test_dropout(student, rng):
    """In training, weights are dropped; `attention_weights` holds them as they are before."""
    attention = student.BilinearAttention(2, 3, 0.4).to(torch.float64)
    assert_weights_dropped(attention, 0.4, *draw(rng, batch=1))


@pytest.mark.points(0)
@pytest.mark.needs("test_example")
def test_dtype(student, rng):
    """A module in bfloat16 takes inputs in bfloat16, and so is its output."""
    attention = student.BilinearAttention(2, 3, 0.0).to(torch.bfloat16)
    output = output_of(attention, *(tensor.to(torch.bfloat16) for tensor in draw(rng)))
    assert_dtype(output, torch.bfloat16, "the output for bfloat16")


@pytest.mark.points(0)
@pytest.mark.needs("test_example")
def test_nothing_is_remembered(student, rng):
    """A call with other numbers changes no later output."""
    attention = with_weights(student)
    output_of(attention, *(rng.randn(1, *shape) for shape in ((1, 2), (3, 4), (3, 2))))
    expected = output_of(with_weights(student), *example())
    assert_close(output_of(attention, *example()), expected, "the output of a second call")
