"""Public tests of masked softmax, which students can read and run."""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_vectorised,
    assert_written_by_hand,
    expect,
)

pytestmark = pytest.mark.needs("test_by_hand")


def called(student, rng, lens, batch=2, n_queries=3, n_keys=4):
    """Return a call of `masked_softmax` on random scores of this shape."""
    X, valid_lens = rng.randn(batch, n_queries, n_keys), torch.ones(batch) if lens else None
    return lambda: student.masked_softmax(X, valid_lens)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch does all of the work."""
    assert_written_by_hand(student, called(student, rng, lens=True))


@pytest.mark.points(3)
def test_worked_example(student):
    """The worked example: scores 1, 2, 3 with valid length 2."""
    X = torch.tensor([[[1.0, 2.0, 3.0]]])
    expected = torch.tensor([[[0.2689, 0.7311, 0.0]]])
    assert_close(student.masked_softmax(X, torch.tensor([2])), expected, atol=1e-4)


@pytest.mark.points(4)
def test_rows_sum_to_one(student, rng):
    """In every row, the weights of the valid keys sum to 1 and all other weights are 0."""
    X = rng.randn(2, 3, 5)
    weights = student.masked_softmax(X, torch.tensor([2, 4]))
    assert_close(weights.sum(dim=-1), torch.ones(2, 3, dtype=X.dtype), "the sum of a row")
    expect((weights[0, :, 2:] == 0).all(), "a key beyond length 2 has a weight other than 0")
    expect((weights[1, :, 4:] == 0).all(), "the key beyond length 4 has a weight other than 0")


@pytest.mark.points(3)
def test_no_lengths(student, rng):
    """Without lengths, the result is the plain softmax over the keys."""
    X = rng.randn(2, 3, 5)
    assert_close(student.masked_softmax(X, None), torch.softmax(X, dim=-1))


@pytest.mark.points(3)
def test_a_length_for_each_query(student):
    """With one length per query, each row has its own mask."""
    X = torch.zeros(1, 3, 4)
    expected = torch.tensor([[[1.0, 0, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [0.5, 0.5, 0, 0]]])
    assert_close(student.masked_softmax(X, torch.tensor([[1, 3, 2]])), expected)


@pytest.mark.points(2)
def test_length_zero(student, rng):
    """A row with nothing to attend to gets zeros."""
    weights = student.masked_softmax(rng.randn(2, 3, 4), torch.tensor([0, 3]))
    assert_close(weights[0], torch.zeros(3, 4, dtype=torch.float64), "the row of length 0")


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over batch items, queries or keys."""
    more = {"batch items": {"batch": (8, 17)}, "queries": {"n_queries": (9, 19)}}
    more["keys"] = {"n_keys": (10, 21)}
    for lens in (True, False):
        assert_vectorised(student, functools.partial(called, student, rng, lens), more)
