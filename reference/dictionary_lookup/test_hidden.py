"""Hidden tests of dictionary lookup, which decide the points."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_same,
    assert_same_gradients,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    raises,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, HEADS, N_QUERIES, N_KEYS, D_KEY, D_VALUE = 2, 7, 3, 5, 4, 6
ENTRIES = {0: [2, 3, 1, 4], 1: [5, 7, 0, 6], 2: [3, 2, 9, 8]}


def qkv(rng, *leading, scale=1.0, dtype=torch.float64):
    """Return random Q, K and V with the sizes of this suite."""
    Q = rng.randn(*leading, N_QUERIES, D_KEY) * scale
    K = rng.randn(*leading, N_KEYS, D_KEY) * scale
    V = rng.randn(*leading, N_KEYS, D_VALUE)
    return Q.to(dtype), K.to(dtype), V.to(dtype)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it."""
    Q, K, V = qkv(rng)
    assert_written_by_hand(
        student,
        lambda: student.attention(Q[None, None], K[None, None], V[None, None]),
        lambda: student.lookup(ENTRIES, 1),
    )


@pytest.mark.points(1)
def test_blend_of_values(student, reference, rng):
    """With the default temp, the output is the plain softmax of the scores times the values."""
    Q, K, V = qkv(rng)
    assert_close(student.attention(Q, K, V), reference.attention(Q, K, V))


@pytest.mark.points(1)
def test_temp(student, reference, rng):
    """A temp near 0 picks the best key, a huge temp gives the mean, and others lie in between."""
    for temp in (0.5, 0.05, 1e6):
        Q, K, V = qkv(rng)
        expected = reference.attention(Q, K, V, temp=temp)
        assert_close(student.attention(Q, K, V, temp=temp), expected, f"the output with {temp=}")


@pytest.mark.points(1)
def test_leading_axes_and_views(student, reference, rng):
    """Q, K and V may have any leading axes and may be views, such as transposed tensors."""
    Q, K, V = qkv(rng, BATCH)
    assert_close(student.attention(Q, K, V, 1.0), reference.attention(Q, K, V, 1.0))
    Q, K, V = (tensor.transpose(0, 1) for tensor in qkv(rng, HEADS, BATCH))
    assert_close(student.attention(Q, K, V, 1.0), reference.attention(Q, K, V, 1.0))


@pytest.mark.points(1)
@pytest.mark.needs("test_blend_of_values")
def test_arguments_are_left_alone(student, rng):
    """Q, K and V are not modified."""
    assert_unchanged(student, student.attention, *qkv(rng), 0.8, names=("Q", "K", "V", "temp"))


@pytest.mark.points(1)
@pytest.mark.needs("test_blend_of_values")
def test_order_of_pairs(student, rng):
    """Reordering the keys and the values together does not change the output.

    Guards: attention looks up a set of pairs; their positions have no meaning.
    """
    Q, K, V = qkv(rng)
    order = rng.permutation(N_KEYS)
    pairs = torch.stack([Q, Q]), torch.stack([K, K[order]]), torch.stack([V, V[order]])
    output, reordered = student.attention(*pairs, 1.0)
    shape = (N_QUERIES, D_VALUE)
    assert_same(reordered, output, "the output after reordering", shape=shape)


@pytest.mark.points(1)
def test_scores_of_any_size(student, reference, rng):
    """Scores of ±1e4 give finite results, whatever the scores of the other queries are."""
    Q, K, V = qkv(rng)
    Q = Q * torch.tensor([[1e4], [1.0], [-1e4]], dtype=Q.dtype)
    assert_close(student.attention(Q, K, V, 1.0), reference.attention(Q, K, V, 1.0))


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach Q, K and V, and match those of the formula."""
    names = ("Q", "K", "V", "temp")
    assert_same_gradients(student.attention, reference.attention, *qkv(rng), 1.0, names=names)


@pytest.mark.points(1)
@pytest.mark.needs("test_blend_of_values")
def test_half_precision(student, reference, rng):
    """The output has the dtype of the inputs, also in half precision."""
    Q, K, V = qkv(rng, scale=0.3, dtype=torch.bfloat16)
    assert_close(student.attention(Q, K, V, 1.0), reference.attention(Q, K, V, 1.0), atol=0.05)


@pytest.mark.points(1)
def test_misuse(student, rng):
    """A temp of 0 or below raises ValueError, and an unknown key raises KeyError."""
    Q, K, V = qkv(rng)
    for temp in (-1.0, 0.0):
        with raises(student, "ValueError"):
            student.attention(Q, K, V, temp)
        with raises(student, "ValueError"):
            student.lookup(ENTRIES, 1, temp)
    for key in (-1, 3):
        with raises(student, "KeyError"):
            student.lookup(ENTRIES, key)


@pytest.mark.points(1)
def test_lookup(student, reference):
    """`lookup` returns the value of a key; a larger temp mixes in the other values."""
    assert_close(student.lookup(ENTRIES, 1), torch.tensor([5.0, 7.0, 0.0, 6.0]))
    expected = reference.lookup(ENTRIES, 2, temp=1.0)
    assert_close(student.lookup(ENTRIES, 2, temp=1.0), expected, "the value with temp=1.0")


@pytest.mark.points(1)
def test_lookup_of_any_keys(student):
    """The keys may be any ints, in any order, and the values may be floats."""
    entries = {40: [2.5, 3.0], -3: [5.0, 7.5], 7: [3.0, 2.0], 1: [0.5, 4.0]}
    for key in (-3, 1):
        found = student.lookup(entries, key)
        assert_close(found, torch.tensor(entries[key]), f"the value of {key}")


@pytest.mark.points(1)
@pytest.mark.needs("test_blend_of_values")
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch, queries or keys."""
    small = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    large = rng.randn(3, 7, 4), rng.randn(3, 8, 4), rng.randn(3, 8, 6)
    assert_vectorised(
        student,
        lambda: student.attention(*small, 1.0),
        lambda: student.attention(*large, 1.0),
    )
