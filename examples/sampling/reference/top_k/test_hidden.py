"""Hidden tests of top-k, which decide the points.

One mistake should cost one check. So a check of an edge compares with what the student's own code
gives in the ordinary case, or looks only at the edge.
"""

import functools

import pytest
import torch
from torch import Tensor

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    expect,
    in_float64,
)

ROWS, N_VOCAB = 3, 7


def distinct(rng, *shape):
    """Return logits of a shape of which no two are close: whole numbers in random order."""
    count = torch.Size(shape).numel()
    return (rng.permutation(count).double() - count // 2).view(shape)


def assert_filtered(output, logits):
    """Raise `Mismatch` unless some logits of an output are kept and others are not."""
    expect(isinstance(output, Tensor) and output.shape == logits.shape, "the shape changes")
    expect(output.isfinite().any() and not output.isfinite().all(), "nothing is filtered")


@pytest.mark.points(3)
def test_the_largest_are_kept(student, reference, rng):
    """The k largest logits of each row stay where they are, and all others are -inf."""
    for shape in ((3, 7), (7, 3), (4, 4), (2, 3, 5), (2, 3, 2, 6), (1, 5)):
        logits = distinct(rng, *shape)
        for k in range(1, shape[-1]):
            output, right = student.top_k(logits, k), reference.top_k(logits, k)
            assert_close(in_float64(output), right, f"the output for k = {k}")


@pytest.mark.points(1)
def test_no_leading_axis(student, rng):
    """A row without leading axes is filtered as in a batch.

    Guards: logits of shape (n_vocab,).
    """
    logits = distinct(rng, N_VOCAB)
    output = student.top_k(logits, 3)
    assert_filtered(output, logits)
    assert_close(output, student.top_k(logits[None], 3)[0])


@pytest.mark.points(1)
def test_equal_logits(student, rng):
    """Of equal logits, those with the lower index are kept, so that exactly k are."""
    rows = [[2, 1, 2, 2, 0, 2, 1], [0, 0, 0, 0, 0, 0, 0], [-1, 3, -1, -1, 3, -1, 5]]
    logits = torch.tensor(rows).double()[:, rng.permutation(N_VOCAB)]
    # A fraction for the index makes the same order without equal logits.
    apart = logits - torch.arange(N_VOCAB) / 100
    for k in range(1, N_VOCAB):
        kept, wanted = (student.top_k(each, k).isfinite() for each in (logits, apart))
        assert_filtered(student.top_k(apart, k), apart)
        says = f"with k = {k}, others of some equal logits are kept, or another number of them"
        expect(kept.shape == wanted.shape and (kept == wanted).all(), says)


@pytest.mark.points(1)
def test_k_at_its_limits(student, rng):
    """A k of n_vocab or more keeps all logits, and a k below 1 is refused."""
    logits = distinct(rng, ROWS, N_VOCAB)
    assert_filtered(student.top_k(logits, 2), logits)
    for k in (N_VOCAB, N_VOCAB + 1, 1000):
        assert_close(in_float64(student.top_k(logits, k)), logits, f"the output for k = {k}")
    for k in (0, -1):
        assert_refused(student, lambda k=k: student.top_k(logits, k), f"top_k with k = {k}")


@pytest.mark.points(1)
def test_logits_of_any_size(student, reference, rng):
    """Logits may be negative, huge, or -inf already.

    Guards: fillers and thresholds that suit ordinary logits only.
    """
    logits = distinct(rng, ROWS, N_VOCAB)
    plain = student.top_k(logits, 3)
    assert_filtered(plain, logits)
    kept = plain.isfinite()
    for shift, scale in ((-100.0, 1.0), (0.0, 1e6), (-1e9, 1e3)):
        given = logits * scale + shift
        output = student.top_k(given, 3)
        says = f"other logits are kept after logits * {scale:g} + {shift:g}"
        expect((output.isfinite() == kept).all(), says)
    masked = logits.clone()
    masked[:, ::2] = -torch.inf
    output = student.top_k(masked, 5)
    expect(isinstance(output, Tensor) and output.shape == masked.shape, "the shape changes")
    expect((output[:, ::2] == -torch.inf).all(), "a logit of -inf comes out as another number")


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach the kept logits."""
    logits = distinct(rng, ROWS, N_VOCAB)
    inputs = {"logits": logits, "k": 3}
    assert_slopes(student, student.top_k, reference.top_k, inputs, rng=rng)


@pytest.mark.points(1)
def test_arguments(student, reference, rng):
    """logits may be a view and is not modified, and the output has its dtype."""
    logits = distinct(rng, ROWS, N_VOCAB)
    plain = student.top_k(logits, 3)
    for given in (logits, logits.T.contiguous().T):
        output = assert_unchanged(student, student.top_k, given, 3, names=("logits",))
        assert_filtered(output, logits)
        assert_close(output, plain, "the output for a view")
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        output = student.top_k(logits.to(dtype), 3)
        assert_dtype(output, dtype, f"the output for logits of {dtype}")
        assert_close(output.double(), plain.double(), f"the output for logits of {dtype}")


@pytest.mark.points(0)
def test_no_python_loops(student, rng):
    """No Python loop runs over rows or tokens.

    Guards: loops, which are slow and which no mistake of the catalogue is about.
    """

    def called(rows=2, n_vocab=5):
        return functools.partial(student.top_k, distinct(rng, rows, n_vocab), 3)

    assert_filtered(called()(), distinct(rng, 2, 5))
    grown = {"rows": {"rows": (9, 19)}, "tokens": {"n_vocab": (17, 35)}}
    assert_vectorised(student, called, grown)
