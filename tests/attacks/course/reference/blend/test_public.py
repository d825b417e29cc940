"""Public tests of blend, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close


@pytest.mark.points(1)
def test_equal_scores_give_the_mean(student):
    """Equal scores give the mean of the values."""
    values = torch.tensor([[2.0, 4.0], [6.0, 8.0]])
    assert_close(student.blend(torch.ones(1, 2), values), torch.tensor([[4.0, 6.0]]))
