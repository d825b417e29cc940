"""Public tests of dictionary lookup, which students can read and run."""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    raises,
)

pytestmark = pytest.mark.needs("test_by_hand")

ENTRIES = {0: [2, 3], 1: [5, 7], 2: [3, 2]}


def called(student, rng, batch=2, n_queries=3, n_keys=5):
    """Return a call of `attention` on random queries, keys and values."""
    Q, K, V = (
        rng.randn(batch, n_queries, 4),
        rng.randn(batch, n_keys, 4),
        rng.randn(batch, n_keys, 6),
    )
    return lambda: student.attention(Q, K, V)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the attention."""
    assert_written_by_hand(student, called(student, rng, 2, 3, 5))


@pytest.mark.points(3)
def test_worked_example(student):
    """The worked example: with the identity as V, the output shows the weights of three keys."""
    Q = torch.tensor([[0.4685, 0.9785]])
    K = torch.tensor([[0.5539, 0.7239], [0.4111, 0.3878], [0.2376, 0.1264]])
    expected = torch.tensor([[0.4643, 0.3126, 0.2231]])
    assert_close(student.attention(Q, K, torch.eye(3)), expected, atol=1e-4)


@pytest.mark.points(3)
def test_lookup(student):
    """Looking up key 1 gives [5, 7]; with temp 1, it gives a mix of all values."""
    assert_close(student.lookup(ENTRIES, 1), torch.tensor([5.0, 7.0]), atol=1e-4)
    expected = torch.tensor([3.9403, 5.0925])
    assert_close(student.lookup(ENTRIES, 1, temp=1.0), expected, atol=1e-4)
    shifted = {key + 10: value for key, value in ENTRIES.items()}
    assert_close(student.lookup(shifted, 12), torch.tensor([3.0, 2.0]), atol=1e-4)


@pytest.mark.points(2)
def test_temperature(student, rng):
    """A temp near 0 picks the value of the best key; a huge temp gives the mean of all values."""
    K, V = torch.eye(5, dtype=torch.float64)[:, :4], rng.randn(5, 6)
    best = student.attention(K[1:4], K, V, temp=0.01)
    assert_close(best, V[1:4], "the output with temp 0.01")
    mean = student.attention(K[1:4], K, V, temp=1e9)
    assert_close(mean, V.mean(dim=0).expand(3, 6), "the output with temp 1e9")


@pytest.mark.points(2)
def test_leading_axes(student, rng):
    """Attention is computed separately for each item along the leading axes."""
    Q, K, V = rng.randn(2, 7, 3, 4), rng.randn(2, 7, 5, 4), rng.randn(2, 7, 5, 6)
    output = student.attention(Q, K, V)
    expect(output.shape == (2, 7, 3, 6), f"the output has shape {tuple(output.shape)}")
    assert_close(output[1, 2], student.attention(Q[1, 2], K[1, 2], V[1, 2]), "item [1, 2]")


@pytest.mark.points(2)
def test_misuse(student, rng):
    """A temp of 0 raises ValueError, and an unknown key raises KeyError."""
    Q, K, V = rng.randn(3, 4), rng.randn(5, 4), rng.randn(5, 6)
    student.attention(Q, K, V, temp=0.5)  # code that refuses everything refuses nothing
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        student.attention(Q, K, V, temp=0)
    with raises(student, "KeyError"):
        student.lookup(ENTRIES, 3)


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over a leading axis, queries or keys."""
    more = {"batch items": {"batch": (7, 15)}, "queries": {"n_queries": (8, 17)}}
    more["keys"] = {"n_keys": (11, 23)}
    assert_vectorised(student, functools.partial(called, student, rng), more)
