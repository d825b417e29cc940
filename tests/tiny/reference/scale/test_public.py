"""Public tests of scale, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close


@pytest.mark.points(8)
def test_twice(student):
    """Twice 1 is 2."""
    assert_close(student.scale(torch.ones(3), 2.0), torch.full((3,), 2.0))
