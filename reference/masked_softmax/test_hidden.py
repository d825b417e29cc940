"""Hidden tests of masked softmax, which decide the points."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_same_gradients,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    raises,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_QUERIES, N_KEYS = 2, 3, 5


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The masking is written by hand, without a torch function that does all of it."""
    X, lens = rng.randn(BATCH, N_QUERIES, N_KEYS), torch.tensor([2, 4])
    assert_written_by_hand(student, lambda: student.masked_softmax(X, lens))


@pytest.mark.points(1)
def test_no_lengths(student, reference, rng):
    """Without lengths, the result is the plain softmax over the keys."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS)
    assert_close(student.masked_softmax(X, None), reference.masked_softmax(X, None))


@pytest.mark.points(2)
def test_a_length_for_each_batch_item(student, reference, rng):
    """One length per batch item, from 1 to n_keys, masks the same keys for all its queries.

    Guards: the plain case, which should be the first to fail if the mask is wrong, and the
    shortest and longest lengths, where an off-by-one error shows.
    """
    X, lens = rng.randn(4, N_QUERIES, N_KEYS), torch.tensor([2, 4, 1, N_KEYS])
    assert_close(student.masked_softmax(X, lens), reference.masked_softmax(X, lens))


@pytest.mark.points(2)
def test_a_length_for_each_query(student, reference, rng):
    """With one length per query, each row has its own mask.

    Guards: lengths of shape (batch, n_queries), except for length 0.
    """
    X, lens = rng.randn(BATCH, N_QUERIES, N_KEYS), torch.tensor([[2, 4, 3], [5, 1, 2]])
    assert_close(student.masked_softmax(X, lens), reference.masked_softmax(X, lens))


@pytest.mark.points(2)
def test_length_zero(student, reference, rng):
    """A row with nothing to attend to gets zeros, not nan and not uniform weights.

    Guards: the values at length 0, separately from the gradients.
    """
    X, lens = rng.randn(BATCH, N_QUERIES, N_KEYS), torch.tensor([[0, 2, 1], [3, 0, 0]])
    assert_close(student.masked_softmax(X, lens), reference.masked_softmax(X, lens))


@pytest.mark.points(1)
def test_masked_weights_are_exactly_zero(student, rng):
    """A padded key has a weight of exactly 0, not just a small one."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS)
    weights = student.masked_softmax(X, torch.tensor([3, 2]))
    largest = max(weights[0, :, 3:].abs().max().item(), weights[1, :, 2:].abs().max().item())
    expect(largest == 0, f"a padded key has the weight {largest:.3g}")
    expect((weights[0, :, :3] > 0).all(), "a key that is not padded has no weight")


@pytest.mark.points(1)
def test_scores_of_any_size(student, reference, rng):
    """Weights stay finite for scores of ±1e4, scores below -1e6 and huge padded scores."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS)
    lens = torch.tensor([[2, 4, 3], [5, 1, 2]])
    towering = X.masked_fill(torch.arange(N_KEYS) >= lens.view(BATCH, N_QUERIES, 1), 1e3)
    scores, lens = torch.cat([X * 1e4, X - 1e7, towering]), lens.repeat(3, 1)
    assert_close(student.masked_softmax(scores, lens), reference.masked_softmax(scores, lens))


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach X, match those of the formula, and stay finite at length 0."""
    X, lens = rng.randn(BATCH, N_QUERIES, N_KEYS), torch.tensor([[0, 4, 3], [5, 1, 2]])
    assert_same_gradients(
        student.masked_softmax, reference.masked_softmax, X, lens, names=("X", "valid_lens")
    )


@pytest.mark.points(2)
def test_lengths_as_floats_and_views(student, reference, rng):
    """Lengths may be floats and X may be a transposed view; neither is modified."""
    X = rng.randn(BATCH, N_KEYS, N_QUERIES).transpose(1, 2)
    lens = torch.tensor([2.0, 4.0])
    weights = assert_unchanged(student, student.masked_softmax, X, lens, names=("X", "valid_lens"))
    assert_close(weights, reference.masked_softmax(X, lens))


@pytest.mark.points(1)
@pytest.mark.needs("test_a_length_for_each_batch_item")
def test_half_precision(student, reference, rng):
    """The weights have the dtype of X, also in half precision."""
    X, lens = rng.randn(BATCH, N_QUERIES, N_KEYS, dtype=torch.bfloat16), torch.tensor([0, 4])
    assert_close(student.masked_softmax(X, lens), reference.masked_softmax(X, lens))


@pytest.mark.points(1)
def test_lengths_that_do_not_fit(student, rng):
    """A length greater than n_keys, or a valid_lens of any other shape, raises ValueError."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS)
    for lens in (torch.tensor([2, N_KEYS + 1]), torch.tensor([2, 3, 4]), torch.ones(N_QUERIES, 2)):
        with raises(student, "ValueError"):
            student.masked_softmax(X, lens)


@pytest.mark.points(1)
@pytest.mark.needs("test_a_length_for_each_batch_item")
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch, queries or keys."""
    lens = torch.tensor([2, 4, 3, 1, 5])
    assert_vectorised(
        student,
        lambda: student.masked_softmax(rng.randn(2, 3, 5), lens[:2]),
        lambda: student.masked_softmax(rng.randn(5, 4, 7), lens),
    )
