"""Public tests, which students can read and run: the worked example of the statement."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
    parameter_shapes,
)


def example():
    """Return the queries, keys and values of the statement's example."""
    queries = [[[1.0], [-2.0]]]  # (batch, n_queries, d_query)
    keys = [[[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]]  # (batch, n_keys, d_key)
    values = [[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]]  # (batch, n_keys, d_value)
    return [torch.tensor(numbers, dtype=torch.float64) for numbers in (queries, keys, values)]


def with_weights(student):
    """Return a module with the example's weights."""
    state = {
        "W_q.weight": torch.tensor([[1.0], [-1.0]]),
        "W_k.weight": torch.eye(2),
        "w_v.weight": torch.tensor([[1.0, 1.0]]),
    }
    return load_parameters(student.AdditiveAttention(1, 2, 2, 0.0), state)


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    assert_written_by_hand(student, lambda: with_weights(student)(*example()))


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_parameters(student):
    """W_q, W_k and w_v are linear layers without bias."""
    found = parameter_shapes(student.AdditiveAttention(4, 3, 5, 0.0))
    expected = {"W_q.weight": (5, 4), "W_k.weight": (5, 3), "w_v.weight": (1, 5)}
    expect(found == expected, f"the parameters are {found}, not {expected}")


@pytest.mark.points(4)
@pytest.mark.needs("test_written_by_hand")
def test_example(student):
    """The example of the statement comes out."""
    expected = torch.tensor([[[3.3963, 3.2961], [2.9390, 2.9778]]], dtype=torch.float64)
    assert_close(output_of(with_weights(student), *example()), expected, atol=1e-4)


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_lengths(student):
    """With a length of 2, the third key is not attended to."""
    expected = torch.tensor([[[0.6363, 0.3637], [0.4573, 0.5427]]], dtype=torch.float64)
    output = output_of(with_weights(student), *example(), torch.tensor([2]))
    assert_close(output, expected, atol=1e-4)
