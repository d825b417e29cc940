"""Public tests of attention in a sliding window, which students can read and run."""

import math

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_linear_memory,
    assert_refused,
    assert_written_by_hand,
    output_of,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

V = torch.arange(5, dtype=torch.float64).view(1, 1, 5, 1)
ZEROS = torch.zeros_like(V)


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    assert_written_by_hand(student, lambda: student.sliding_attention(ZEROS, ZEROS, V, 3))


@pytest.mark.points(4)
def test_slopes(student):
    """The slopes of four and of six heads."""
    for n, more in ((4, []), (6, [0.5, 0.125])):
        wanted = torch.tensor([0.25, 0.0625, 0.0156, 0.0039, *more]).double()
        assert_close(student.alibi_slopes(n).double(), wanted, f"the slopes of {n}", atol=1e-4)


@pytest.mark.points(6)
def test_window(student):
    """The worked example without slopes, with windows of 3, 1 and 99."""
    for window, wanted in (
        (3, [0.0, 0.5, 1.0, 2.0, 3.0]),
        (1, [0.0, 1.0, 2.0, 3.0, 4.0]),
        (99, [0.0, 0.5, 1.0, 1.5, 2.0]),
    ):
        output = student.sliding_attention(ZEROS, ZEROS, V, window)
        shown = f"the output with a window of {window}"
        assert_close(output.flatten(), torch.tensor(wanted).double(), shown)
    assert_refused(student, lambda: student.sliding_attention(ZEROS, ZEROS, V, 0), "a window of 0")


@pytest.mark.points(5)
def test_slope(student):
    """The worked example with a slope of ln 2."""
    output = student.sliding_attention(ZEROS, ZEROS, V, 3, torch.tensor([math.log(2)]).double())
    wanted = torch.tensor([0.0, 0.6667, 1.4286, 2.4286, 3.4286]).double()
    assert_close(output.flatten(), wanted, "the output", atol=1e-4)


@pytest.mark.points(4)
def test_memory(student, rng):
    """Four times as many tokens need four times the memory, not sixteen times."""
    x = rng.randn(1, 1, 1600, 2).float()

    def call(n):
        return output_of(student.sliding_attention, *[x[:, :, :n]] * 3, 4)

    assert_linear_memory(student, call, 400)
