"""Public tests of perplexity, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close, assert_written_by_hand

pytestmark = pytest.mark.needs("test_by_hand")


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the loss."""
    logits, tokens = rng.randn(2, 3, 5), rng.randint(0, 5, 2, 3)
    assert_written_by_hand(student, lambda: student.perplexity(logits, tokens))


@pytest.mark.points(4)
def test_worked_example(student):
    """The worked example: a sentence of three tokens, of which two are guessed."""
    logits = torch.tensor([[[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [9.0, 0.0, 0.0]]])
    found = student.perplexity(logits, torch.tensor([[1, 0, 2]]))
    assert_close(found, torch.tensor(2.1236), atol=1e-4)


@pytest.mark.points(2)
def test_hesitates_between_all(student):
    """With equal logits, the perplexity is the size of the vocabulary."""
    found = student.perplexity(torch.zeros(2, 4, 7), torch.tensor([[1, 2, 3, 4], [0, 6, 5, 0]]))
    assert_close(found, torch.tensor(7.0), atol=1e-4)


@pytest.mark.points(2)
def test_nothing_to_guess(student):
    """The perplexity of sentences of one token is 1."""
    assert_close(
        student.perplexity(torch.ones(2, 1, 3), torch.tensor([[2], [1]])), torch.tensor(1.0)
    )
