"""Hidden tests of nucleus filtering, which decide the points.

No sum of probabilities here lies near p, so that no rounding decides. One mistake should cost one
check: a check of an edge compares with what the student's own code gives in the ordinary case, or
looks only at the edge.
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

SHARES = ((40, 25, 15, 10, 6, 4), (70, 12, 8, 5, 3, 2), (22, 20, 19, 15, 13, 11))
LEVELS = (0.3, 0.5, 0.73, 0.87, 0.95)  # of p; each at least a hundredth from every sum


def rows(rng, *leading):
    """Return the logits of six tokens (*leading, 6) in random order, with the shares above."""
    count = torch.Size(leading).numel()
    found = [torch.tensor(SHARES[n % 3])[rng.permutation(6)] for n in range(count)]
    logits = (torch.stack(found) / 100.0).double().log()  # (count, 6)
    return (logits + rng.randn(count, 1)).view(*leading, 6)


def assert_filtered(output, logits):
    """Raise `Mismatch` unless some logits of an output are kept and others are not."""
    expect(isinstance(output, Tensor) and output.shape == logits.shape, "the shape changes")
    expect(output.isfinite().any() and not output.isfinite().all(), "nothing is filtered")


@pytest.mark.points(3)
def test_the_smallest_set(student, reference, rng):
    """The most likely tokens are kept until their probabilities add up to at least p."""
    for leading in ((4,), (6,), (3, 2), (2, 2, 3), (1,)):
        logits = rows(rng, *leading)
        for p in LEVELS:
            output, right = student.nucleus(logits, p), reference.nucleus(logits, p)
            assert_close(in_float64(output), right, f"the output for p = {p}")


@pytest.mark.points(1)
def test_no_leading_axis(student, rng):
    """A row without leading axes is filtered as in a batch.

    Guards: logits of shape (n_vocab,).
    """
    logits = rows(rng, 1)[0]
    output = student.nucleus(logits, 0.73)
    assert_filtered(output, logits)
    assert_close(output, student.nucleus(logits[None], 0.73)[0])


@pytest.mark.points(1)
def test_equal_logits(student, rng):
    """Of equally likely tokens, those with the lower index are kept first."""
    numbers = [[2, 1, 2, 2, 0, 2, 1], [0, 0, 0, 0, 0, 0, 0], [-1, 1, -1, -1, 1, -1, 2]]
    logits = torch.tensor(numbers).double()[:, rng.permutation(7)]
    # So little that it orders equal tokens, and moves no sum past p.
    apart = logits - torch.arange(7) * 1e-4
    for p in (0.2, 0.45, 0.63, 0.81):
        kept, wanted = (student.nucleus(each, p).isfinite() for each in (logits, apart))
        assert_filtered(student.nucleus(apart, p), apart)
        says = f"for p = {p}, others of some equal tokens are kept, or another number of them"
        expect(kept.shape == wanted.shape and (kept == wanted).all(), says)


@pytest.mark.points(1)
def test_one_token_is_left(student, rng):
    """However small p is, the most likely token of each row is kept, and no other.

    Guards: rows in which the first token alone is more than enough.
    """
    logits = rows(rng, 6)
    for p in (1e-6, 0.01, 0.1):
        output = student.nucleus(logits, p)
        expect(isinstance(output, Tensor) and output.shape == logits.shape, "the shape changes")
        kept = output.isfinite()
        expect(kept.any(dim=-1).all(), f"for p = {p:g}, no token of a row is kept")
        expect((kept.sum(dim=-1) == 1).all(), f"for p = {p:g}, several tokens of a row are kept")


@pytest.mark.points(1)
def test_all_tokens(student, rng):
    """With p = 1, all tokens are kept, even those with almost no probability."""
    logits = rows(rng, 4)
    assert_filtered(student.nucleus(logits, 0.5), logits)
    spread = torch.tensor([[0.0, -50.0, -100.0, 3.0], [-60.0, 0.0, -60.0, -300.0]]).double()
    for given in (logits, spread, logits.float()):
        output = student.nucleus(given, 1.0)
        assert_close(in_float64(output), given.double(), "the output for p = 1")


@pytest.mark.points(1)
def test_p_that_does_not_fit(student, rng):
    """A p of 0 or below, or above 1, is refused with ValueError."""
    logits = rows(rng, 4)
    assert_filtered(student.nucleus(logits, 0.5), logits)
    for p in (0.0, -0.5, 1.01, 50.0):
        assert_refused(student, lambda p=p: student.nucleus(logits, p), f"nucleus with p = {p}")


@pytest.mark.points(1)
def test_logits_of_any_size(student, rng):
    """A number added to all logits of a row changes nothing, and huge logits are allowed.

    Guards: exponentials that overflow, which show only far from 0.
    """
    # Whole numbers, so that the sums are exact in every floating type that code may compute in.
    logits = (rng.permutation(24).double() - 12).view(4, 6)
    plain = student.nucleus(logits, 0.97)
    assert_filtered(plain, logits)
    for far in (1e4, -1e4, -1e7):
        given = logits + torch.tensor([far, 0.0, -far, far])[:, None]
        output = student.nucleus(given, 0.97)
        same = isinstance(output, Tensor) and (output.isfinite() == plain.isfinite()).all()
        expect(same, f"other tokens are kept for logits around {far:g}")


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach the kept logits."""
    inputs = {"logits": rows(rng, 3), "p": 0.73}
    assert_slopes(student, student.nucleus, reference.nucleus, inputs, rng=rng)


@pytest.mark.points(1)
def test_arguments(student, rng):
    """logits may be a view and is not modified, and the output has its dtype."""
    logits = rows(rng, 5)
    plain = student.nucleus(logits, 0.73)
    for given in (logits, logits.T.contiguous().T):
        output = assert_unchanged(student, student.nucleus, given, 0.73, names=("logits",))
        assert_filtered(output, logits)
        assert_close(output, plain, "the output for a view")
    whole = (rng.permutation(24).double() - 12).view(4, 6) * 2
    right = student.nucleus(whole, 0.97)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        output = student.nucleus(whole.to(dtype), 0.97)
        assert_dtype(output, dtype, f"the output for logits of {dtype}")
        assert_close(output.double(), right.double(), f"the output for logits of {dtype}")


@pytest.mark.points(0)
def test_no_python_loops(student, rng):
    """No Python loop runs over rows or tokens.

    Guards: loops, which are slow and which no mistake of the catalogue is about.
    """

    def called(count=2, n_vocab=5):
        return functools.partial(student.nucleus, rng.randn(count, n_vocab), 0.6)

    assert_filtered(called(9, 9)(), rng.randn(9, 9))
    grown = {"rows": {"count": (9, 19)}, "tokens": {"n_vocab": (17, 35)}}
    assert_vectorised(student, called, grown)
