"""Public tests of cross-entropy, which students can read and run."""

import math

import pytest
import torch

from grader.testing import assert_close, assert_vectorised, assert_written_by_hand

pytestmark = pytest.mark.needs("test_by_hand")


def called(student, rng, *shape):
    """Return a call of `cross_entropy` on random logits of this shape."""
    logits, targets = rng.randn(*shape), rng.randint(0, shape[-1], *shape[:-1])
    return lambda: student.cross_entropy(logits, targets)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch does all of the work."""
    assert_written_by_hand(student, called(student, rng, 2, 3, 4))


@pytest.mark.points(4)
def test_worked_example(student):
    """The worked example: two positions count, and one is ignored."""
    logits = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [5.0, 1.0, 1.0]])
    targets = torch.tensor([2, 0, -100])
    assert_close(student.cross_entropy(logits, targets), torch.tensor(0.7531), atol=1e-4)


@pytest.mark.points(3)
def test_equal_logits(student):
    """With equal logits, the loss is the logarithm of the number of classes."""
    loss = student.cross_entropy(torch.zeros(2, 3, 7), torch.ones(2, 3, dtype=torch.int64))
    assert_close(loss, torch.tensor(math.log(7)))


@pytest.mark.points(3)
def test_large_logits(student):
    """Logits of 10,000 give a finite loss."""
    logits = torch.tensor([[10000.0, 9998.0], [-10000.0, -9998.0]])
    assert_close(
        student.cross_entropy(logits, torch.tensor([0, 1])), torch.tensor(0.1269), atol=1e-4
    )


@pytest.mark.points(2)
def test_nothing_counted(student):
    """If every position is ignored, the loss is 0."""
    loss = student.cross_entropy(torch.ones(2, 3), torch.full((2,), -100))
    assert_close(loss, torch.tensor(0.0))


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over positions or classes."""
    larger = {"batch items": (8, 3, 4), "tokens": (2, 9, 4), "classes": (2, 3, 9)}
    more = {axis: called(student, rng, *shape) for axis, shape in larger.items()}
    assert_vectorised(student, called(student, rng, 2, 3, 4), more)
