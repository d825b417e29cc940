"""Public tests of top-k, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close, assert_vectorised, expect

INF = float("inf")


@pytest.mark.points(4)
def test_worked_example(student):
    """The worked example: the two largest of four logits, in one row with equal ones."""
    logits = torch.tensor([[1.0, 4.0, 2.0, 3.0], [0.0, 0.0, -1.0, 0.0]])
    expected = torch.tensor([[-INF, 4.0, -INF, 3.0], [0.0, 0.0, -INF, -INF]])
    assert_close(student.top_k(logits, 2), expected)


@pytest.mark.points(3)
def test_k_are_kept(student, rng):
    """In every row, exactly k logits are kept."""
    logits = rng.randn(2, 3, 7)
    for k in (1, 3, 6):
        kept = student.top_k(logits, k).isfinite().sum(dim=-1)
        expect((kept == k).all(), f"with k = {k}, a row keeps another number of logits")


@pytest.mark.points(2)
def test_a_large_k(student, rng):
    """A k larger than the vocabulary keeps all logits."""
    logits = rng.randn(2, 4)
    assert_close(student.top_k(logits, 9), logits)


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over rows or tokens."""

    def called(rows=3, n_vocab=5):
        logits = rng.randn(rows, n_vocab)
        return lambda: student.top_k(logits, 2)

    more = {"rows": {"rows": (9, 19)}, "tokens": {"n_vocab": (16, 33)}}
    assert_vectorised(student, called, more)
