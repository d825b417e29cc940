"""Public tests of nucleus filtering, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close, assert_vectorised, expect

INF = float("inf")


@pytest.mark.points(4)
def test_worked_example(student):
    """The worked example: two tokens for p = 0.8, and one for p = 0.5."""
    logits = torch.tensor([[0.0, 2.0, 1.0, -1.0]])
    assert_close(student.nucleus(logits, 0.8), torch.tensor([[-INF, 2.0, 1.0, -INF]]))
    assert_close(student.nucleus(logits, 0.5), torch.tensor([[-INF, 2.0, -INF, -INF]]))


@pytest.mark.points(3)
def test_enough_is_kept(student, rng):
    """In every row, the probabilities of the kept tokens add up to at least p."""
    logits = rng.randn(4, 3, 9)
    for p in (0.2, 0.6, 0.9):
        kept = student.nucleus(logits, p).isfinite()
        sums = (torch.softmax(logits, dim=-1) * kept).sum(dim=-1)
        expect((sums > p - 1e-6).all(), f"for p = {p}, the kept tokens of a row are too few")


@pytest.mark.points(2)
def test_one_is_left(student, rng):
    """However small p is, the most likely token of each row is kept."""
    kept = student.nucleus(rng.randn(3, 5), 1e-4).isfinite()
    expect((kept.sum(dim=-1) == 1).all(), "for p = 0.0001, a row keeps no token, or several")


@pytest.mark.points(2)
def test_all_are_kept(student, rng):
    """With p = 1, all tokens are kept."""
    logits = rng.randn(3, 5)
    assert_close(student.nucleus(logits, 1.0), logits)


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over rows or tokens."""

    def called(rows=3, n_vocab=5):
        logits = rng.randn(rows, n_vocab)
        return lambda: student.nucleus(logits, 0.7)

    more = {"rows": {"rows": (9, 19)}, "tokens": {"n_vocab": (16, 33)}}
    assert_vectorised(student, called, more)
