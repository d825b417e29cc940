"""Public tests of cross-entropy, which students can read and run."""

import functools
import math

import pytest
import torch

from grader.testing import assert_close, assert_vectorised, assert_written_by_hand

pytestmark = pytest.mark.needs("test_by_hand")


def called(student, rng, batch=2, n_tokens=3, n_classes=4):
    """Return a call of `log_loss` on random logits of this shape."""
    logits = rng.randn(batch, n_tokens, n_classes)
    targets = rng.randint(0, n_classes, batch, n_tokens)
    return lambda: student.log_loss(logits, targets)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch does all of the work."""
    assert_written_by_hand(student, called(student, rng))


@pytest.mark.points(4)
def test_worked_example(student):
    """The worked example: two positions count, and one is ignored."""
    logits = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [5.0, 1.0, 1.0]])
    targets = torch.tensor([2, 0, -100])
    assert_close(student.log_loss(logits, targets), torch.tensor(0.7531), atol=1e-4)


@pytest.mark.points(3)
def test_equal_logits(student):
    """With equal logits, the loss is the logarithm of the number of classes."""
    loss = student.log_loss(torch.zeros(2, 3, 7), torch.ones(2, 3, dtype=torch.int64))
    assert_close(loss, torch.tensor(math.log(7)))


@pytest.mark.points(3)
def test_large_logits(student):
    """Logits of 10,000 give a finite loss."""
    logits = torch.tensor([[10000.0, 9998.0], [-10000.0, -9998.0]])
    assert_close(student.log_loss(logits, torch.tensor([0, 1])), torch.tensor(0.1269), atol=1e-4)


@pytest.mark.points(2)
def test_nothing_counted(student):
    """If every position is ignored, the loss is 0."""
    loss = student.log_loss(torch.ones(2, 3), torch.full((2,), -100))
    assert_close(loss, torch.tensor(0.0))


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over positions or classes."""
    more = {"batch items": {"batch": (8, 17)}, "tokens": {"n_tokens": (9, 19)}}
    more["classes"] = {"n_classes": (10, 21)}
    assert_vectorised(student, functools.partial(called, student, rng), more)
