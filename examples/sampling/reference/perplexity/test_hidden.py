"""Hidden tests of perplexity, which decide the points.

They run on a stand-in for cross-entropy, so a mistake in that exercise costs nothing here.
"""

import functools

import pytest
import torch
from torch import Tensor

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

BATCH, N_TOKENS, N_VOCAB = 2, 4, 5
PAD = -100


def drawn(rng, *shape):
    """Return random logits of a shape, and a token for each position."""
    return rng.randn(*shape), rng.randint(0, shape[-1], *shape[:-1])


def assert_number(found):
    """Raise `Mismatch` unless a perplexity is one finite number above 0."""
    expect(isinstance(found, Tensor) and found.shape == (), "the result is no tensor of shape ()")
    expect(found.isfinite() and found > 0, "the perplexity is not a finite number above 0")


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The loss is your own cross_entropy, not one of torch's.

    Guards: the ban on torch's own losses, even if other tests fail for other reasons.
    """
    logits, tokens = drawn(rng, BATCH, N_TOKENS, N_VOCAB)
    assert_written_by_hand(student, lambda: student.perplexity(logits, tokens))


@pytest.mark.points(2)
def test_formula(student, reference, rng):
    """Without padding, the perplexity is the exponential of the mean loss of all guesses.

    Guards: the plain case, which should be the first to fail if the formula is wrong.
    """
    for shape in ((2, 4, 5), (1, 6, 3), (4, 4, 4), (5, 2, 7), (1, 2, 3)):
        logits, tokens = drawn(rng, *shape)
        right = reference.perplexity(logits, tokens)
        found = in_float64(student.perplexity(logits, tokens))
        assert_close(found, right, f"the perplexity for logits of shape {shape}")


@pytest.mark.points(1)
def test_padding(student, reference, rng):
    """Padding is not guessed, and the guesses at it do not count.

    Guards: padding on its own, in sentences of one length, whatever the formula is.
    """
    logits, tokens = drawn(rng, BATCH, 6, N_VOCAB)
    for length in (4, 2):
        given = tokens.clone()
        given[:, length:] = PAD
        assert_right_or_own(
            student.perplexity(logits, given),
            reference.perplexity(logits, given),
            lambda length=length: student.perplexity(logits[:, :length], tokens[:, :length]),
            f"the perplexity of sentences of {length} tokens and padding",
        )


@pytest.mark.points(1)
def test_sentences_of_all_lengths(student, reference, rng):
    """Every guessed token of the batch has the same weight, in short sentences and long ones.

    Guards: batches in which sentences differ in length, which no own answer can predict.
    """
    logits, tokens = drawn(rng, 3, 6, N_VOCAB)
    for row, length in enumerate((6, 3, 2)):
        tokens[row, length:] = PAD
    right = reference.perplexity(logits, tokens)
    assert_close(in_float64(student.perplexity(logits, tokens)), right, "the perplexity")


@pytest.mark.points(1)
def test_any_pad(student, reference, rng):
    """pad may be any int: -1, a token of the vocabulary, or a large one."""
    logits, tokens = drawn(rng, BATCH, 6, N_VOCAB)
    for pad in (-1, 0, 3, 50):
        given = tokens.masked_fill(tokens == pad, 1)
        given[:, 4:] = pad
        plain = given.masked_fill(given == pad, PAD)
        assert_right_or_own(
            student.perplexity(logits, given, pad),
            reference.perplexity(logits, given, pad),
            functools.partial(student.perplexity, logits, plain),
            f"the perplexity with pad {pad}",
        )


@pytest.mark.points(1)
def test_nothing_to_guess(student, rng):
    """With one token, or padding only after it, the perplexity is 1.

    Guards: batches without a single guess, where a mean of nothing would be nan.
    """
    logits, tokens = drawn(rng, 3, N_TOKENS, N_VOCAB)
    padded = tokens.clone()
    padded[:, 1:] = PAD
    for given in ((logits[:, :1], tokens[:, :1]), (logits, padded)):
        one = torch.ones((), dtype=torch.float64)
        assert_close(in_float64(student.perplexity(*given)), one, "the perplexity of no guess")


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach the logits, and are the slopes of the perplexity."""
    logits, tokens = drawn(rng, BATCH, N_TOKENS, N_VOCAB)
    inputs = {"logits": logits, "tokens": tokens}
    assert_slopes(student, student.perplexity, reference.perplexity, inputs, rng=rng)


@pytest.mark.points(1)
def test_tokens_that_do_not_fit(student, rng):
    """Tokens of any other shape than the first two axes of logits are refused."""
    logits, tokens = drawn(rng, BATCH, N_TOKENS, N_VOCAB)
    assert_number(student.perplexity(logits, tokens))
    longer = torch.cat([tokens, tokens[:, :1]], dim=1)
    for given in (tokens[:, :-1], tokens[:, 1:], tokens[:1], longer, tokens[..., None]):
        shown = f"perplexity with logits of shape {tuple(logits.shape)} and tokens of shape "
        shown += str(tuple(given.shape))
        assert_refused(student, lambda given=given: student.perplexity(logits, given), shown)


@pytest.mark.points(0)
def test_arguments(student, reference, rng):
    """Both arguments may be views, neither is modified, and the result has the dtype of logits.

    Guards: views, dtypes, loops and arguments, with which a solution of four lines has no trouble.
    """
    logits, tokens = drawn(rng, BATCH, N_TOKENS, N_VOCAB)
    turned = logits.transpose(0, 1).contiguous().transpose(0, 1), tokens.T.contiguous().T
    own = functools.partial(student.perplexity, logits, tokens)
    for given in ((logits, tokens), turned):
        names = ("logits", "tokens")
        found = assert_unchanged(student, student.perplexity, *given, names=names)
        assert_right_or_own(found, reference.perplexity(logits, tokens), own)
    for dtype in (torch.float32, torch.bfloat16):
        found = student.perplexity(logits.to(dtype), tokens)
        assert_dtype(found, dtype, f"the perplexity for logits of {dtype}")

    def called(batch=2, n_tokens=3):
        return functools.partial(student.perplexity, *drawn(rng, batch, n_tokens, N_VOCAB))

    grown = {"sentences": {"batch": (7, 15)}, "tokens": {"n_tokens": (10, 21)}}
    assert_vectorised(student, called, grown)


@pytest.mark.own_parts
@pytest.mark.points(0)
def test_on_your_own_loss(student, reference, rng):
    """With your own cross_entropy, the perplexity is the same.

    Guards: the student's two exercises work together. A mistake in the loss has already cost
    points there, so this test is worth none.
    """
    logits, tokens = drawn(rng, BATCH, N_TOKENS, N_VOCAB)
    assert_close(student.perplexity(logits, tokens), reference.perplexity(logits, tokens))
