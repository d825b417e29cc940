"""Hidden tests of masked softmax, which decide the points.

One mistake should cost one check. So a check of an edge accepts two answers: the right one, and the
one that follows from what the student's own code gives in the ordinary case.
"""

import contextlib
import functools

import pytest
import torch
from torch import Tensor

from grader.errors import StudentFailure
from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_right_or_own,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_QUERIES, N_KEYS = 2, 3, 5


def lengths(*numbers):
    """Return lengths as a tensor."""
    return torch.tensor(numbers)


def assert_weights(weights):
    """Raise `Mismatch` unless weights are a tensor with numbers other than 0 in it."""
    expect(isinstance(weights, Tensor), "the weights are not a tensor")
    expect((weights != 0).any(), "all weights are 0")


def assert_lengths_count(student, X, lens):
    """Raise `Mismatch` if the student's weights are the same with and without lengths."""
    weights, without = student.masked_softmax(X, lens), student.masked_softmax(X, None)
    assert_weights(without)
    same_shape = isinstance(weights, Tensor) and weights.shape == without.shape
    expect(same_shape, "the weights do not have the shape of X")
    expect((weights - without).abs().max() > 1e-5, "the lengths have no effect")


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The masking is written by hand, without a torch function that does all of it.

    Guards: the rule itself, whatever other checks see of a forbidden call.
    """
    X, lens = rng.randn(BATCH, N_QUERIES, N_KEYS), lengths(2, 4)
    assert_written_by_hand(
        student,
        lambda: student.masked_softmax(X, lens),
        lambda: student.masked_softmax(X, None),
    )


@pytest.mark.points(1)
def test_no_lengths(student, reference, rng):
    """Without lengths, every key is valid: the result is the plain softmax over the keys.

    Guards: the path without lengths, whatever the formula is.
    """
    for shape in ((BATCH, N_QUERIES, N_KEYS), (3, 7, 4), (2, 1, 5), (1, 3, 4), (1, 1, 1)):
        X = rng.randn(*shape)
        every_key = torch.full(shape[:1], shape[-1])
        assert_right_or_own(
            student.masked_softmax(X, None),
            reference.masked_softmax(X, None),
            lambda X=X, lens=every_key: student.masked_softmax(X, lens),
        )


@pytest.mark.points(2)
def test_a_length_for_each_batch_item(student, reference, rng):
    """One length per batch item, from 1 to n_keys, masks the same keys for all its queries.

    Guards: the plain case, which should be the first to fail if the mask is wrong, the shortest and
    longest lengths, where an off-by-one error shows, and single queries, keys and batch items.
    """
    cases = {
        (4, N_QUERIES, N_KEYS): lengths(2, 4, 1, N_KEYS),
        (2, 6, 4): lengths(3, 2),
        (4, 4, 4): lengths(2, 3, 1, 4),
        (3, 1, 5): lengths(2, 5, 4),
        (1, 4, 5): lengths(3),
        (3, 4, 1): lengths(1, 1, 1),
        (1, 1, 3): lengths(2),
    }
    for shape, lens in cases.items():
        X = rng.randn(*shape)
        weights = student.masked_softmax(X, lens)
        shown = f"the result for X of shape {shape}"
        assert_close(in_float64(weights), reference.masked_softmax(X, lens), shown)


@pytest.mark.points(2)
def test_a_length_for_each_query(student, reference, rng):
    """With one length per query, each row is masked as by that length for its batch item.

    Guards: lengths of shape (batch, n_queries), except for length 0.
    """
    cases = {
        (BATCH, N_QUERIES, N_KEYS): lengths([2, 4, 3], [5, 1, 2]),
        (3, 3, 3): lengths([1, 3, 2], [2, 1, 1], [3, 2, 1]),
        (2, 5, 3): lengths([1, 3, 2, 2, 1], [3, 1, 2, 3, 1]),
        (3, 1, 4): lengths([2], [4], [1]),
        (1, 3, 5): lengths([2, 5, 1]),
        (1, 1, 4): lengths([3]),
    }
    for shape, lens in cases.items():
        X = rng.randn(*shape)

        def row_by_row(X=X, lens=lens):
            rows = [student.masked_softmax(X, lens[:, i])[:, i] for i in range(X.shape[1])]
            return torch.stack(rows, dim=1)

        shown = f"the result for X of shape {shape}"
        weights, right = student.masked_softmax(X, lens), reference.masked_softmax(X, lens)
        assert_right_or_own(weights, right, row_by_row, shown)
    X, lens = rng.randn(BATCH, N_QUERIES, N_KEYS), lengths([2, 4, 3], [5, 1, 2])
    assert_lengths_count(student, X, lens)


@pytest.mark.points(2)
def test_length_zero(student, reference, rng):
    """A row with nothing to attend to gets zeros, not nan and not uniform weights.

    Guards: the values at length 0, separately from the gradients; other rows stay as they are.
    """
    X = rng.randn(3, N_QUERIES, N_KEYS)
    for lens in (lengths(0, 2, 5), lengths([0, 2, 1], [3, 0, 0], [5, 4, 0]), lengths(0, 0, 0)):
        weights, right = student.masked_softmax(X, lens), reference.masked_softmax(X, lens)
        expect(isinstance(weights, Tensor) and weights.shape == X.shape, "no weights for each key")
        is_empty = (lens == 0).view(3, -1).expand(3, N_QUERIES)
        assert_close(weights[is_empty].double(), right[is_empty], "a row of length 0")
        assert_right_or_own(
            weights[~is_empty],
            right[~is_empty],
            lambda lens=lens, rows=~is_empty: student.masked_softmax(X, lens.clamp(min=1))[rows],
            "the other rows",
        )
    assert_weights(student.masked_softmax(X, None))


@pytest.mark.points(1)
def test_masked_weights_are_exactly_zero(student, rng):
    """A padded key has a weight of exactly 0, not just a small one."""
    for scale in (1.0, 10.0):
        X = rng.randn(BATCH, N_QUERIES, N_KEYS) * scale
        weights = student.masked_softmax(X, lengths(3, 2))
        largest = max(weights[0, :, 3:].abs().max().item(), weights[1, :, 2:].abs().max().item())
        expect(largest == 0, f"a padded key has the weight {largest:.3g}")
        expect((weights[0, :, :3] != 0).any(), "a key that is not padded has no weight")


@pytest.mark.points(1)
def test_scores_of_any_size(student, reference, rng):
    """A number added to all scores of a row changes nothing, nor does any score of a padded key.

    Guards: scores that lie far apart, whose weights are tiny.
    """
    # Whole numbers, so that the sums are exact in every floating type that code may compute in.
    X = rng.randint(-3, 4, BATCH, N_QUERIES, N_KEYS).double()
    X[..., 0] += 4  # no row of equal scores
    lens = lengths([2, 4, 3], [5, 1, 2])
    padded = torch.arange(N_KEYS) >= lens.unsqueeze(-1)
    far = torch.tensor([1e4, 0.0, -1e7]).view(1, N_QUERIES, 1)
    cases = {"scores from -1e7 to 1e4": (X + far, lens)}
    cases["scores of -30"] = (X - 30, lens)
    cases["scores of 1e4, without lengths"] = (X + far, None)
    cases["a padded score of 1e3"] = (X.masked_fill(padded, 1e3), lens)
    cases["a padded score of 1e12"] = (X.masked_fill(padded, 1e12), lens)
    cases["a padded score of -1e12"] = (X.masked_fill(padded, -1e12), lens)
    for shown, (scores, lens_) in cases.items():
        assert_right_or_own(
            student.masked_softmax(scores, lens_),
            reference.masked_softmax(scores, lens_),
            lambda lens_=lens_: student.masked_softmax(X, lens_),
            f"the result for {shown}",
        )
    steps = X - 4.0 * torch.arange(N_KEYS)  # weights of e^-16 and less
    right, near = (reference.masked_softmax(each, None) for each in (steps, X / 4))
    ordinary = in_float64(student.masked_softmax(X / 4, None))
    if (ordinary - near).abs().max() < 1e-5:  # other weights have lost points already
        weights = in_float64(student.masked_softmax(steps, None))
        assert_close(weights, right, "a small weight", rtol=1e-2, atol=1e-12)
    equal = torch.zeros_like(X)
    for scores in (equal - 1e12, equal + 1e12):
        assert_right_or_own(
            student.masked_softmax(scores, lens),
            reference.masked_softmax(scores, lens),
            lambda: student.masked_softmax(equal, lens),
            f"the result for scores of {scores[0, 0, 0].item():g}",
        )
    some_zero = rng.randint(0, 2, BATCH, N_QUERIES, N_KEYS).double() - 0.5
    some_zero[..., :2] = 0.0
    assert_right_or_own(
        student.masked_softmax(some_zero, lens),
        reference.masked_softmax(some_zero, lens),
        lambda: student.masked_softmax(some_zero + 7, lens),
        "the result for scores of which some are 0",
    )
    for scores in (X * 1e4, X * -1e4):
        weights = student.masked_softmax(scores, lens)
        expect(isinstance(weights, Tensor) and weights.isfinite().all(), "a weight is not finite")


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach X, are those of what the code computes, and stay finite at length 0.

    Guards: with lengths of both kinds and without.
    """
    X = rng.randn(BATCH, N_QUERIES, N_KEYS)
    for lens in (lengths(2, 4), lengths([1, 4, 3], [5, 1, 2]), lengths([0, 4, 0], [5, 1, 2]), None):
        inputs = {"X": X, "valid_lens": lens}
        assert_slopes(student, student.masked_softmax, reference.masked_softmax, inputs, rng=rng)
    inputs = {"X": X, "valid_lens": lengths(0, 0)}
    if in_float64(student.masked_softmax(*inputs.values())).isfinite().all():  # else others tell
        assert_slopes(student, student.masked_softmax, reference.masked_softmax, inputs, rng=rng)
    X[:, :, -1] = 1e4  # padding
    inputs = {"X": X, "valid_lens": lengths(2, 4)}
    assert_slopes(student, student.masked_softmax, reference.masked_softmax, inputs, rng=rng)


@pytest.mark.points(1)
def test_lengths_as_floats(student, reference, rng):
    """Lengths may be floats: key j is valid if j is less than the length, which may be 2.5."""
    X = rng.randn(3, N_QUERIES, N_KEYS)
    cases = {
        "2.0, 4.0 and 5.0": (lengths(2.0, 4.0, 5.0), lengths(2, 4, 5)),
        "2.5, 0.5 and 3.1": (lengths(2.5, 0.5, 3.1), lengths(3, 1, 4)),
        "2.5 … for each query": (
            lengths([2.5, 1.0, 0.3], [4.7, 5.0, 1.2], [2.0, 3.9, 3.5]).double(),
            lengths([3, 1, 1], [5, 5, 2], [2, 4, 4]),
        ),
    }
    for shown, (lens, whole) in cases.items():
        assert_right_or_own(
            student.masked_softmax(X, lens),
            reference.masked_softmax(X, lens),
            lambda whole=whole: student.masked_softmax(X, whole),
            f"the result for the lengths {shown}",
        )
    assert_lengths_count(student, X, lengths(2.0, 4.0, 3.0))


@pytest.mark.points(1)
def test_views_and_arguments(student, reference, rng):
    """X and valid_lens may be views, such as a transposed X, and neither is modified."""
    X, square = rng.randn(BATCH, N_QUERIES, N_KEYS), lengths([2, 4, 3], [5, 1, 2])
    turned, swapped = X.mT.contiguous().mT, X.transpose(0, 1).contiguous().transpose(0, 1)
    cases = [(X, lengths(2, 4)), (X, square), (X, None), (X, square.T.contiguous().T)]
    for scores, lens in (*cases, (turned, square), (swapped, lengths(2, 4)), (turned, None)):
        names = ("X", "valid_lens")
        weights = assert_unchanged(student, student.masked_softmax, scores, lens, names=names)
        plain = None if lens is None else lens.contiguous()
        right = reference.masked_softmax(X, lens)
        own = functools.partial(student.masked_softmax, X, plain)
        assert_right_or_own(weights, right, own, "the result")
    for lens in (lengths(0, 4), lengths([0, 2, 1], [3, 0, 0])):
        assert_unchanged(student, student.masked_softmax, X, lens, names=names)
    for lens in (lengths(2.5, 4.0), lengths([2.5, 4.2, 3.0], [5.0, 0.5, 2.0])):
        with contextlib.suppress(StudentFailure):  # another check asks for lengths as floats
            assert_unchanged(student, student.masked_softmax, X, lens, names=names)


@pytest.mark.points(1)
def test_dtypes(student, reference, rng):
    """The weights have the dtype of X, also in half precision.

    Guards: with lengths of both kinds and without, and more keys than bfloat16 can count.
    """
    X = rng.randn(BATCH, N_QUERIES, N_KEYS)
    for lens in (lengths(1, 4), lengths([2, 4, 3], [5, 1, 2]), None):
        right = exact = reference.masked_softmax(X, lens)
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            weights = student.masked_softmax(X.to(dtype), lens)
            assert_dtype(weights, dtype, f"the result for X of {dtype}")
            assert_weights(weights.double())
            exact = weights if dtype == torch.float64 else exact
            near = (weights.double() - right).abs().max() < 0.05
            own = exact.shape == weights.shape and (weights.double() - exact).abs().max() < 0.05
            expect(near or own, f"the result for X of {dtype} is another than for float64")
    X = rng.randn(BATCH, 1, 300) * 0.1
    for lens in (lengths(257, 299), lengths([259], [263])):
        right, exact = reference.masked_softmax(X, lens), student.masked_softmax(X, lens)
        narrow = student.masked_softmax(X.to(torch.bfloat16), lens)
        same = (torch.equal(narrow == 0, each == 0) for each in (right, exact))
        expect(any(same), "with 300 keys, others are padded for X of bfloat16 than for float64")


@pytest.mark.points(1)
def test_lengths_that_do_not_fit(student, rng):
    """A length greater than n_keys, or a valid_lens of any other shape, raises ValueError."""
    X = rng.randn(BATCH, N_QUERIES, N_KEYS)
    assert_weights(student.masked_softmax(X, lengths(2, N_KEYS)))
    assert_weights(student.masked_softmax(X, lengths([2, 4, N_KEYS], [5, 1, 2])))
    for lens in (
        lengths(2, N_KEYS + 1),
        lengths(N_KEYS + 0.5, 2.0),
        lengths([2, 4, 3], [5, N_KEYS + 1, 2]),
        lengths(2, 3, 4),
        lengths(2),
        torch.ones(BATCH, 1),
        torch.ones(1, N_QUERIES),
        torch.ones(N_QUERIES, BATCH),
        torch.ones(BATCH, N_KEYS),
        torch.ones(BATCH, N_QUERIES, 1),
        torch.ones(BATCH, N_QUERIES, N_KEYS),
    ):
        values = f"valid_lens {lens.tolist()}" if lens.max() > 1 else "valid_lens"
        shown = f"masked_softmax with X of shape {tuple(X.shape)} and {values}"
        shape = f" of shape {tuple(lens.shape)}"
        assert_refused(student, lambda lens=lens: student.masked_softmax(X, lens), shown + shape)


@pytest.mark.points(1)
def test_no_python_loops(student, reference, rng):
    """No Python loop runs over batch, queries or keys."""
    kinds = ("a length for each batch item", "a length for each query", "no lengths")
    for kind in kinds:

        def called(batch=2, n_queries=3, n_keys=5, kind=kind):
            X = rng.randn(batch, n_queries, n_keys)
            lens = rng.randint(2, n_keys, batch, n_queries)
            chosen = dict(zip(kinds, (lens[:, 0], lens, None)))[kind]
            return lambda code: code.masked_softmax(X, chosen)

        assert_weights(called()(student))
        grown = {"batch": (105, 211), "n_queries": (106, 213), "n_keys": (109, 219)}
        axes = zip(("batch items", "queries", "keys"), grown.items())
        named = {f"{axis} ({kind})": dict([sizes]) for axis, sizes in axes}
        assert_vectorised(student, called, named, reference)
