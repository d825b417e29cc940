"""Public tests, which students can read and run. TODO: a worked example with numbers."""

import pytest
import torch

from grader.testing import assert_close


@pytest.mark.points(4)
def test_worked_example(student):
    """TODO: the worked example of the statement."""
    x = torch.tensor([[1.0, 2.0, 6.0]])
    assert_close(student.bilinear_attention(x), torch.tensor([[-2.0, -1.0, 3.0]]))
