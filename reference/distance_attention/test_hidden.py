"""Hidden tests, which decide the points. TODO: ask for every promise of the statement, once."""

import pytest

from grader.testing import assert_close, assert_same


@pytest.mark.points(3)
def test_values(student, reference, rng):
    """TODO: the sentence that students read if this fails."""
    x = rng.randn(3, 5)  # (batch, n)
    assert_close(student.distance_attention(x), reference.distance_attention(x))


@pytest.mark.points(1)
def test_one_item(student, rng):
    """A batch of one item gives the same as in a larger batch.

    Guards: TODO: the promise that no known mistake breaks; or write one that does.
    """
    x = rng.randn(3, 5)  # (batch, n)
    alone = student.distance_attention(x[:1])
    assert_same(alone, student.distance_attention(x)[:1], "the output for one item")
