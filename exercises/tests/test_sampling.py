"""Public tests of sampling and speculation, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close, assert_vectorised, assert_written_by_hand, expect, raises

pytestmark = pytest.mark.needs("test_by_hand")

LOGITS = torch.tensor([0.1, 0.4, 0.05, 0.25, 0.2]).log()
P = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)


@pytest.mark.points(0)
def test_by_hand(student):
    """torch's own ways to draw do not do the work."""
    assert_written_by_hand(student, lambda: student.draw(student.distribution(LOGITS), 0.5))


@pytest.mark.points(8)
def test_worked_example(student):
    """The worked example: top-p alone, and after top-k."""
    likely = student.distribution(LOGITS, top_p=0.7)
    assert_close(likely, torch.tensor([0, 0.4706, 0, 0.2941, 0.2353]), atol=1e-4)
    both = student.distribution(LOGITS, top_k=3, top_p=0.75)
    assert_close(both, torch.tensor([0, 0.6154, 0, 0.3846, 0]), atol=1e-4)


@pytest.mark.points(3)
def test_temperature(student, rng):
    """Temperature 0 gives all to the largest logit, and a negative one is refused."""
    assert_close(student.distribution(LOGITS, 0.0), torch.tensor([0.0, 1, 0, 0, 0]))
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        student.distribution(LOGITS, -1.0)


@pytest.mark.points(3)
def test_draw(student):
    """The token is the first one with a sum of probabilities above u."""
    found = [int(student.draw(P, u)) for u in (0.0, 0.39, 0.4, 0.41, 0.75, 0.95)]
    expect(found == [0, 0, 1, 1, 2, 3], f"the tokens are {found}, not [0, 0, 1, 1, 2, 3]")


@pytest.mark.points(7)
def test_law(student):
    """Whatever the draft, the first token has the law of the target."""
    draft, count = P.flip(0), 12
    middles = ((torch.arange(count) + 0.5) / count).double()
    law = torch.zeros(4, dtype=torch.float64)
    for token in range(4):
        for u in middles.split(1):
            for v in middles.tolist():
                chosen = torch.tensor([token]), draft[None], P.expand(2, 4), u, v
                law[int(student.speculate(*chosen)[0])] += draft[token] / count**2
    expect((law - P).abs().max() < 0.03, f"the law is {law.tolist()}, not {P.tolist()}")


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No loop runs over rows or tokens."""

    def called(rows=3, vocab=7):
        logits = rng.randn(rows, vocab)
        return lambda: student.distribution(logits, 0.7, 4, 0.9)

    assert_vectorised(student, called, {"rows": {"rows": (11, 23)}, "tokens": {"vocab": (17, 35)}})
