"""Public tests of rotary position embedding, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_vectorised,
    assert_written_by_hand,
)

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


@pytest.mark.points(7)
def test_interleaved(student):
    """The example with interleaved pairs comes out."""
    wanted = [[1, 0, 1, 0], [0.5403, 0.8415, 0.9950, 0.0998], [-0.4161, 0.9093, 0.9801, 0.1987]]
    found = student.rotate(example(), torch.arange(3), base=100.0)
    assert_close(found, torch.tensor(wanted).unsqueeze(1), "the rotated x", atol=1e-4)


@pytest.mark.points(2)
def test_halves(student):
    """The example with interleaved=False comes out."""
    wanted = [[1, 0, 1, 0], [-0.3012, 0, 1.3818, 0], [-1.3254, 0, 0.4932, 0]]
    found = student.rotate(example(), torch.arange(3), base=100.0, interleaved=False)
    assert_close(found, torch.tensor(wanted).unsqueeze(1), "the rotated x", atol=1e-4)


@pytest.mark.points(4)
def test_attention(student):
    """The example of attention comes out, wherever the positions begin."""
    wanted = torch.tensor([[0.8453, 0.2817], [1.0582, 1.5291], [3.8880, 4.0850]]).unsqueeze(1)
    for first in (0, 7):
        positions = torch.arange(first, first + 3)
        found = student.rotary_attention(*pointing(), positions)
        assert_close(found, wanted, f"the output at positions from {first}", atol=2e-4)


@pytest.mark.points(4)
def test_refusals(student):
    """An odd d_head and a missing position are refused."""
    calls = {
        "rotate for d_head 3": lambda: student.rotate(example()[..., :3], torch.arange(3)),
        "rotate for two positions": lambda: student.rotate(example(), torch.arange(2)),
    }
    for shown, call in calls.items():
        assert_refused(student, call, shown)


@pytest.mark.points(0)
@pytest.mark.needs("test_interleaved", "test_halves", "test_attention")
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences, tokens, heads or columns."""

    def called(batch=3, n_tokens=4, num_heads=2, d_head=6):
        x, positions = rng.randn(batch, n_tokens, num_heads, d_head), torch.arange(n_tokens)
        return lambda: (
            student.rotate(x, positions),
            student.rotate(x, positions, interleaved=False),
            student.rotary_attention(x, x, x, positions),
        )

    larger = {"sentences": {"batch": (8, 17)}, "tokens": {"n_tokens": (13, 27)}}
    larger |= {"heads": {"num_heads": (9, 19)}, "columns": {"d_head": (16, 34)}}
    assert_vectorised(student, called, larger)


@pytest.mark.points(0)
@pytest.mark.needs("test_interleaved", "test_halves", "test_attention")
def test_dtype(student, rng):
    """For inputs in bfloat16, all outputs are in bfloat16."""
    x, positions = rng.randn(2, 4, 3, 6).to(torch.bfloat16), torch.arange(4)
    for interleaved in (True, False):
        turned = student.rotate(x, positions, interleaved=interleaved)
        assert_dtype(turned, torch.bfloat16, f"rotate for bfloat16 and {interleaved=}")
    output = student.rotary_attention(x, x, x, positions)
    assert_dtype(output, torch.bfloat16, "rotary_attention for bfloat16")


@pytest.mark.points(0)
@pytest.mark.needs("test_attention")
def test_large_scores(student):
    """With scores of some thousands, each token of the example attends to itself alone."""
    queries, keys, values = pointing()
    output = student.rotary_attention(queries * 100, keys * 100, values, torch.arange(3))
    assert_close(output, values, "the output for large queries and keys")
