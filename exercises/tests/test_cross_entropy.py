"""Public tests of cross-entropy, which students can read and run."""

import functools
import math

import pytest
import torch

from grader.testing import assert_close, assert_vectorised, assert_written_by_hand, raises

pytestmark = pytest.mark.needs("test_by_hand")

LOGITS = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 5.0, 1.0]])
TARGETS = torch.tensor([0, 2, -100])


def called(student, rng, batch=2, n_tokens=3, n_classes=4):
    """Return a call of both functions on random logits of this shape."""
    logits, targets = rng.randn(batch, n_tokens, n_classes), rng.randint(0, 4, batch, n_tokens)
    both = student.cross_entropy, student.cross_entropy_gradient
    return lambda: [each(logits, targets, 1, 0.2) for each in both]


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch does all of the work."""
    assert_written_by_hand(student, called(student, rng))


@pytest.mark.points(4)
def test_worked_example(student):
    """The worked example: two positions are kept, and one is ignored."""
    assert_close(student.cross_entropy(LOGITS, TARGETS), torch.tensor(0.7531), atol=1e-4)


@pytest.mark.points(2)
def test_label_smoothing(student):
    """The worked example with a label_smoothing of 0.3."""
    loss = student.cross_entropy(LOGITS, TARGETS, label_smoothing=0.3)
    assert_close(loss, torch.tensor(0.9031), atol=1e-4)


@pytest.mark.points(3)
def test_gradient(student):
    """The gradient of the worked example, by hand: an ignored position's is 0."""
    found = student.cross_entropy_gradient(LOGITS, TARGETS, label_smoothing=0.3)
    rows = [[-0.0674, 0.0724, -0.0050], [0.1167, 0.1167, -0.2333], [0.0, 0.0, 0.0]]
    assert_close(found, torch.tensor(rows), atol=1e-4)


@pytest.mark.points(2)
def test_equal_logits(student):
    """With equal logits, the loss is the logarithm of the number of classes."""
    loss = student.cross_entropy(torch.zeros(2, 3, 7), torch.ones(2, 3, dtype=torch.int64))
    assert_close(loss, torch.tensor(math.log(7)))


@pytest.mark.points(2)
def test_large_logits(student):
    """Logits of 10,000 give a finite loss."""
    logits = torch.tensor([[10000.0, 9998.0], [-10000.0, -9998.0]])
    loss = student.cross_entropy(logits, torch.tensor([0, 1]))
    assert_close(loss, torch.tensor(0.1269), atol=1e-4)


@pytest.mark.points(2)
def test_nothing_kept(student):
    """If every position is ignored, the loss is 0, and so is the gradient."""
    logits, targets = torch.ones(2, 3), torch.full((2,), -100)
    assert_close(student.cross_entropy(logits, targets), torch.tensor(0.0))
    assert_close(student.cross_entropy_gradient(logits, targets), torch.zeros(2, 3))


@pytest.mark.points(2)
def test_no_such_class(student):
    """A target that is no class is refused."""
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        student.cross_entropy(LOGITS, torch.tensor([0, 3, 1]))


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over positions or classes."""
    more = {"batch items": {"batch": (8, 17)}, "tokens": {"n_tokens": (9, 19)}}
    more["classes"] = {"n_classes": (10, 21)}
    assert_vectorised(student, functools.partial(called, student, rng), more)
