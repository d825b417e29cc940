"""Hidden tests of scale, which decide the points."""

import pytest

from grader.testing import (
    assert_close,
    assert_slopes,
    assert_written_by_hand,
    output_of,
    raises,
    twins,
)

pytestmark = pytest.mark.needs("test_written_by_hand")


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The product is your own.

    Guards: the calls that the exercise forbids.
    """
    x = rng.randn(2, 3)
    assert_written_by_hand(student, lambda: student.scale(x, 2.0))


@pytest.mark.points(2)
def test_twice(student, reference, rng):
    """The factor 2 doubles.

    Guards: the plain case.
    """
    x = rng.randn(2, 3)
    assert_close(student.scale(x, 2.0), reference.scale(x, 2.0))


@pytest.mark.points(2)
def test_thrice(student, reference, rng):
    """The factor 3 triples."""
    x = rng.randn(2, 3)
    assert_close(student.scale(x, 3.0), reference.scale(x, 3.0))


@pytest.mark.points(1)
def test_negative(student, rng):
    """A negative factor raises ValueError."""
    with raises(student, "ValueError"):
        student.scale(rng.randn(3), -1.0)


@pytest.mark.points(3)
def test_module(student, reference, rng):
    """The module multiplies by its weight, and the gradients match."""
    theirs, ours = twins(student.Scale, reference.Scale, 3, rng=rng)
    x = rng.randn(2, 3)
    assert_close(output_of(theirs, x), output_of(ours, x))
    assert_slopes(student, theirs, ours, {"x": x}, rng=rng)
