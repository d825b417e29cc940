"""Hidden tests of blend, which decide the points. CANARY-HIDDEN-9b27"""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_slopes,
    assert_unchanged,
    assert_written_by_hand,
    output_of,
    twins,
)

SECRET = "CANARY-CONSTANT-e4a0"
# Kept from student to student, as a suite should not: what one of them writes, the next must not
# read.
ROWS = torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
pytestmark = pytest.mark.needs("test_written_by_hand")


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The weights are computed by hand."""
    assert_written_by_hand(student, lambda: student.blend(rng.randn(2, 3), rng.randn(3, 4)))


@pytest.mark.points(3)
def test_values(student, reference, rng):
    """Every row is a weighted average of the values."""
    scores, values = rng.randn(2, 3), rng.randn(3, 4)
    assert_close(student.blend(scores, values), reference.blend(scores, values))


@pytest.mark.points(2)
def test_large_scores(student, reference, rng):
    """Scores around a thousand do not overflow."""
    row, values = rng.randn(1, 5) * 1000 + 5000, rng.randn(5, 3)  # no exponential is finite
    scores = torch.cat([row, row.roll(1, dims=1)])  # whose largest scores are never in one column
    assert_close(student.blend(scores, values), reference.blend(scores, values))


@pytest.mark.points(2)
def test_equal_scores_give_the_mean(student, rng):
    """Equal scores give the mean of the values."""
    values = rng.randn(4, 3)
    zeros = rng.randn(2, 4) * 0
    assert_close(student.blend(zeros, values), values.mean(dim=0).expand(2, 3).contiguous())


@pytest.mark.points(3)
def test_module(student, reference, rng):
    """The module's outputs and gradients are right."""
    theirs, ours = twins(student.Blend, reference.Blend, 4, rng=rng)
    x = rng.randn(3, 4)
    assert_close(output_of(theirs, x), output_of(ours, x))
    assert_slopes(student, theirs, ours, {"x": x}, rng=rng)


@pytest.mark.points(0)
def test_arguments_are_left_alone(student):
    """The arguments are not written into."""
    zeros = torch.zeros(1, 2)
    mean = assert_unchanged(student, student.blend, zeros, ROWS, names=("scores", "values"))
    assert_close(mean, torch.full((1, 3), 2.0))


@pytest.mark.points(0)
@pytest.mark.visible("never")
def test_unseen(student, reference, rng):
    """Sizes that no other test has."""
    scores, values = rng.randn(7, 6), rng.randn(6, 5)
    assert_close(student.blend(scores, values), reference.blend(scores, values))


@pytest.mark.points(0)
def test_after_the_unseen(student, rng):
    """An average of ones is one."""
    ones = torch.ones(3, 1, dtype=torch.float64)
    assert_close(student.blend(rng.randn(2, 3), ones), ones[:2])
