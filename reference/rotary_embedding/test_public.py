"""Public tests of rotary position embedding, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close, assert_refused, assert_written_by_hand

pytestmark = pytest.mark.needs("test_written_by_hand")


def example():
    """Return the three tokens of the statement's example, (n_tokens, num_heads, d_head)."""
    return torch.tensor([1.0, 0.0, 1.0, 0.0]).repeat(3, 1, 1)


def pointing():
    """Return queries, keys and values of the example of attention."""
    queries = torch.tensor([2.0, 0.0]).repeat(3, 1, 1)  # (n_tokens, num_heads, d_head)
    return queries, queries, torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[5.0, 5.0]]])


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    positions = torch.arange(3)
    assert_written_by_hand(
        student,
        lambda: student.rotate(example(), positions),
        lambda: student.rotary_attention(*pointing(), positions),
    )


@pytest.mark.points(3)
def test_interleaved(student):
    """The example with interleaved pairs comes out."""
    wanted = [[1, 0, 1, 0], [0.5403, 0.8415, 0.9950, 0.0998], [-0.4161, 0.9093, 0.9801, 0.1987]]
    found = student.rotate(example(), torch.arange(3), base=100.0)
    assert_close(found, torch.tensor(wanted).unsqueeze(1), "the rotated x", atol=1e-4)


@pytest.mark.points(1)
def test_halves(student):
    """The example with interleaved=False comes out."""
    wanted = [[1, 0, 1, 0], [-0.3012, 0, 1.3818, 0], [-1.3254, 0, 0.4932, 0]]
    found = student.rotate(example(), torch.arange(3), base=100.0, interleaved=False)
    assert_close(found, torch.tensor(wanted).unsqueeze(1), "the rotated x", atol=1e-4)


@pytest.mark.points(2)
def test_attention(student):
    """The example of attention comes out, wherever the positions begin."""
    wanted = torch.tensor([[0.8453, 0.2817], [1.0582, 1.5291], [3.8880, 4.0850]]).unsqueeze(1)
    for first in (0, 7):
        positions = torch.arange(first, first + 3)
        found = student.rotary_attention(*pointing(), positions)
        assert_close(found, wanted, f"the output at positions from {first}", atol=2e-4)


@pytest.mark.points(2)
def test_refusals(student):
    """An odd d_head and a missing position are refused."""
    calls = {
        "rotate for d_head 3": lambda: student.rotate(example()[..., :3], torch.arange(3)),
        "rotate for two positions": lambda: student.rotate(example(), torch.arange(2)),
    }
    for shown, call in calls.items():
        assert_refused(student, call, shown)
