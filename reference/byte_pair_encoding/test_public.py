"""Public tests of byte pair encoding, which students can read and run."""

import pytest

from grader.testing import assert_close, assert_written_by_hand, expect, raises

pytestmark = pytest.mark.needs("test_by_hand")

TEXT = b"aaabdaaabac"
MERGES = [(97, 97), (97, 98), (256, 257)]


@pytest.mark.points(0)
def test_by_hand(student):
    """No tokenizer of another package does the work."""
    assert_written_by_hand(student, lambda: student.encode(TEXT, student.train(TEXT, 3)))


@pytest.mark.points(5)
def test_worked_example(student):
    """The worked example: three merges of eleven bytes."""
    assert_close(student.train(TEXT, 3), MERGES, "the merges")


@pytest.mark.points(4)
def test_end(student):
    """The training ends when no pair is there twice."""
    assert_close(student.train(TEXT, 99), MERGES, "the merges")
    assert_close(student.train(b"abc", 2), [], "the merges of a text without a repeated pair")


@pytest.mark.points(7)
def test_encode(student):
    """Merges are made in the order in which they were learned."""
    assert_close(student.encode(TEXT, MERGES), [258, 100, 258, 97, 99], "the tokens")
    assert_close(student.encode(b"abc", [(98, 99), (97, 98)]), [97, 256], "the tokens of abc")


@pytest.mark.points(4)
def test_special(student):
    """A special token becomes its id, and the text around it is encoded."""
    tokens = student.encode(b"ab<e>ab", [(97, 98)], {b"<e>": 257})
    assert_close(tokens, [256, 257, 256], "the tokens")


@pytest.mark.points(3)
def test_there_and_back(student, rng):
    """Any bytes come back."""
    data = bytes(rng.randint(0, 256, 50).tolist()) + TEXT
    back = student.decode(student.encode(data, MERGES), MERGES)
    expect(back == data, f"{data!r} became {back!r}")


@pytest.mark.points(2)
def test_misuse(student):
    """An id that belongs to a merge, and an unknown token, are refused."""
    student.encode(b"ab", MERGES, {b"<e>": 300})  # code that refuses everything refuses nothing
    student.decode([97], MERGES)
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        student.encode(b"ab", MERGES, {b"<e>": 258})
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        student.decode([97, 259], MERGES)
