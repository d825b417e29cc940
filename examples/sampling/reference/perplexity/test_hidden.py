"""The checks of perplexity and their cases.

They run on a stand-in for cross-entropy, so a mistake in that exercise costs nothing here. One
perplexity is a single number, and a mistake is named only if ten numbers of an answer show it. So
most cases ask for those of a dozen batches.
"""

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_close,
    assert_vectorised,
    assert_written_by_hand,
    changed,
    drawn,
    gradients,
    output,
    refused,
    turned,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("token of the vocabulary",)
PADDING = Aspect("padding", "batches with padding")
NOTHING = Aspect("nothing", "batches with nothing to guess", is_edge=True)
PERPLEXITY = "perplexity"
TOKENS = torch.tensor([[1, 0, 4, 2], [3, 3, 0, 1]])
PAD = -100


def batches(rng, *shape, lengths=(), pad=PAD):
    """Return a dozen batches of logits of a shape and tokens, whose sentences may have lengths."""
    for _ in range(12):
        logits, tokens = rng.randn(*shape), rng.randint(0, shape[-1], *shape[:-1])
        for row, length in enumerate(lengths):
            tokens[row, length:] = pad
        yield logits, tokens


def perplexities(*shape, lengths=(), pad=PAD):
    """Return a case: the perplexities of a dozen batches."""
    given = () if pad == PAD else (pad,)
    return lambda student, rng: [
        student.perplexity(*batch, *given)
        for batch in batches(rng, *shape, lengths=lengths, pad=pad)
    ]


def perplexities_and_gradients(*shape, lengths=()):
    """Return a case: the perplexities of a dozen batches, and the gradients of their logits."""
    return lambda student, rng: [
        gradients(student.perplexity, *batch) for batch in batches(rng, *shape, lengths=lengths)
    ]


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The loss is your own cross_entropy, not one of torch's."""
    logits = rng.randn(2, 4, 5)
    assert_written_by_hand(student, lambda: student.perplexity(logits, TOKENS))


test_formula = Check(
    "Without padding, the perplexity is the exponential of the mean loss of all guesses.", points=2
)
formula = test_formula.case
formula("Two sentences without padding.", perplexities(2, 4, 5))
formula("Three longer sentences without padding.", perplexities(3, 7, 4))
formula("As many sentences as tokens and words.", perplexities(4, 4, 4), about="square")
formula("One sentence of two tokens.", perplexities(1, 2, 6), about="single")
formula("One sentence of six tokens.", perplexities(1, 6, 3), about="single", hidden=True)
formula("Five sentences of two tokens.", perplexities(5, 2, 7), hidden=True)


test_padding = Check("Padding is not guessed, and the guesses at it do not count.", about=PADDING)
for length in (4, 2):
    test_padding.case(
        f"Two sentences of {length} tokens and padding.",
        perplexities(2, 6, 5, lengths=(length, length)),
    )
test_padding.case(
    "Four sentences of three tokens and padding.",
    perplexities(4, 5, 6, lengths=(3, 3, 3, 3)),
    hidden=True,
)


test_sentences_of_all_lengths = Check(
    "Every guessed token of the batch has the same weight, in short sentences and long ones.",
    about=PADDING,
)
lengths = test_sentences_of_all_lengths.case
lengths("Sentences of 6, 3 and 2 tokens.", perplexities(3, 6, 5, lengths=(6, 3, 2)))
lengths(
    "Sentences of 1, 7, 2 and 5 tokens.",
    perplexities(4, 7, 3, lengths=(1, 7, 2, 5)),
    hidden=True,
)


test_any_pad = Check(
    "pad may be any int: -1, a token of the vocabulary, or a large one.", about=PADDING
)
any_pad = test_any_pad.case
any_pad("The padding is a token of the vocabulary.", perplexities(2, 6, 5, lengths=(4, 4), pad=1))
any_pad("The padding is -1.", perplexities(2, 6, 5, lengths=(4, 3), pad=-1))
any_pad("The padding is 0.", perplexities(3, 5, 4, lengths=(4, 2, 3), pad=0), hidden=True)
any_pad("The padding is 50.", perplexities(3, 5, 4, lengths=(4, 2, 3), pad=50), hidden=True)


test_nothing_to_guess = Check(
    "With one token, or padding only after it, the perplexity is 1.", about=NOTHING
)
nothing = test_nothing_to_guess.case
nothing("Sentences of one token.", perplexities(3, 1, 6))
nothing("Sentences of one token and padding.", perplexities(3, 4, 6, lengths=(1, 1, 1)))
nothing("One sentence of one token and padding.", perplexities(1, 3, 4, lengths=(1,)), hidden=True)


test_gradients = Check(
    "Gradients reach the logits, and are the slopes of the perplexity.", about="gradient"
)
test_gradients.case("The gradient of the logits.", perplexities_and_gradients(2, 4, 5))
test_gradients.case(
    "The gradient of the logits where there is padding.",
    perplexities_and_gradients(3, 3, 4, lengths=(3, 2, 1)),
    hidden=True,
)


test_tokens_that_do_not_fit = Check(
    "Tokens of any other shape than the first two axes of logits are refused.", about="refusals"
)
misuses = test_tokens_that_do_not_fit.case
for sentence, tokens in (
    ("One token fewer than logits.", TOKENS[:, :-1]),
    ("One token more than logits.", torch.cat([TOKENS, TOKENS[:, :1]], dim=1)),
    ("One sentence of tokens for two of logits.", TOKENS[:1]),
    ("Tokens with an axis of size 1 at the end.", TOKENS[..., None]),
):
    misuses(sentence, refused(PERPLEXITY, drawn(2, 4, 5), tokens))
misuses(
    "Two tokens fewer than logits.",
    refused(PERPLEXITY, drawn(3, 5, 4), torch.tensor([[1, 2, 3], [3, 0, 1], [0, 1, 2]])),
    hidden=True,
)
misuses("Tokens that fit are accepted.", perplexities(2, 4, 5), about="values")


test_arguments = Check(
    "Both arguments may be views, neither is modified, and the result has the dtype of logits.",
    points=0,
    about="views",
)
arguments = test_arguments.case
arguments(
    "Both arguments are transposed views.",
    output(PERPLEXITY, turned(drawn(2, 4, 5), 0, 1), turned(TOKENS)),
)
arguments(
    "The vocabulary is not the last axis in memory.",
    output(PERPLEXITY, turned(drawn(2, 4, 5)), TOKENS),
    hidden=True,
)
arguments(
    "Which numbers of the arguments are others after a call.",
    changed(PERPLEXITY, drawn(2, 4, 5), TOKENS),
    about="writes",
)
arguments(
    "Logits in float32.",
    output(PERPLEXITY, drawn(2, 4, 5, dtype=torch.float32), TOKENS),
    about="dtype",
)
arguments(
    "Logits in bfloat16.",
    output(PERPLEXITY, drawn(2, 4, 5, dtype=torch.bfloat16), TOKENS),
    about="dtype",
    within=(1e-1, 5e-2),
)


@arguments(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences or tokens."""

    def called(batch=2, n_tokens=3):
        logits, tokens = rng.randn(batch, n_tokens, 5), rng.randint(0, 5, batch, n_tokens)
        return lambda: student.perplexity(logits, tokens)

    grown = {"sentences": {"batch": (7, 15)}, "tokens": {"n_tokens": (10, 21)}}
    assert_vectorised(student, called, grown)


@pytest.mark.own_parts
@pytest.mark.points(0)
def test_on_your_own_loss(student, reference, rng):
    """With your own cross_entropy, the perplexity is the same."""
    logits = rng.randn(2, 4, 5)
    assert_close(student.perplexity(logits, TOKENS), reference.perplexity(logits, TOKENS))
