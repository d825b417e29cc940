"""Probes of perplexity: what tells its mistakes apart.

One perplexity is a single number, and a mistake is named only if ten numbers of an answer show it.
So most probes ask for those of a dozen batches.
"""

import torch

from grader.probing import ACCEPTED, Aspect, gradients, probe, written

AXES = ("token of the vocabulary",)  # of an output, in the singular
PADDING = Aspect("padding", "batches with padding")
NOTHING = Aspect("nothing", "batches with nothing to guess", is_edge=True)

BATCHES = 12
PAD = -100


def drawn(rng, *shape):
    """Return random logits of a shape, and a token for each position."""
    return rng.randn(*shape), rng.randint(0, shape[-1], *shape[:-1])


def padded(tokens, *lengths, pad=PAD):
    """Return tokens of which each sentence has a length."""
    places = torch.arange(tokens.shape[1])
    return tokens.masked_fill(places >= torch.tensor(lengths)[:, None], pad)


def answers(student, rng, *shape, lengths=(), pad=PAD):
    """Return the perplexities of a dozen batches of a shape."""
    batches = [drawn(rng, *shape) for _ in range(BATCHES)]
    return [
        student.perplexity(logits, padded(tokens, *lengths, pad=pad) if lengths else tokens, pad)
        for logits, tokens in batches
    ]


@probe("values")
def ordinary(student, rng):
    """Two sentences without padding."""
    return answers(student, rng, 2, 4, 5)


@probe("values")
def longer(student, rng):
    """Three longer sentences without padding."""
    return answers(student, rng, 3, 7, 4)


@probe("square")
def square(student, rng):
    """As many sentences as tokens and words."""
    return answers(student, rng, 4, 4, 4)


@probe(PADDING)
def some_padding(student, rng):
    """Sentences of 6, 3 and 2 tokens."""
    return answers(student, rng, 3, 6, 5, lengths=(6, 3, 2))


@probe(PADDING)
def pad_of_a_token(student, rng):
    """The padding is a token of the vocabulary."""
    return answers(student, rng, 3, 6, 5, lengths=(6, 3, 2), pad=1)


@probe("gradient")
def gradient(student, rng):
    """The gradient of the logits."""
    return gradients(student.perplexity, *drawn(rng, 2, 4, 5))


@probe("single")
def one_sentence(student, rng):
    """One sentence of two tokens."""
    return answers(student, rng, 1, 2, 6)


@probe(NOTHING)
def one_token(student, rng):
    """Sentences of one token."""
    return answers(student, rng, 3, 1, 6)


@probe(NOTHING)
def only_padding(student, rng):
    """Sentences of one token and padding."""
    return answers(student, rng, 3, 4, 6, lengths=(1, 1, 1))


@probe("views")
def transposed(student, rng):
    """Both arguments are transposed views."""
    logits, tokens = drawn(rng, 4, 2, 5)
    return student.perplexity(logits.transpose(0, 1), tokens.T)


@probe("dtype")
def single_precision(student, rng):
    """Logits in float32."""
    logits, tokens = drawn(rng, 2, 4, 5)
    return student.perplexity(logits.float(), tokens)


@probe("writes")
def argument(student, rng):
    """Which numbers of the arguments are others after a call."""
    logits, tokens = drawn(rng, 3, 4, 5)
    after = written(student, student.perplexity, logits.clone(), tokens.clone())
    return [new != old for new, old in zip(after, (logits, tokens))]


@probe("refusals")
def token_missing(student, rng):
    """One token fewer than logits."""
    student.perplexity(rng.randn(2, 4, 5), torch.tensor([[1, 2, 3], [4, 0, 1]]))
    return ACCEPTED


@probe("refusals")
def token_too_many(student, rng):
    """One token more than logits."""
    student.perplexity(rng.randn(2, 3, 5), torch.tensor([[1, 2, 3, 0], [4, 0, 1, 2]]))
    return ACCEPTED
