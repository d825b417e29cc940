r"""# Sampling and speculation

A language model gives logits; a text needs tokens. This exercise turns
logits into a distribution, draws from it, and lets a small model guess
several tokens, which a large model accepts or refuses all at once.

Random numbers are arguments here, so every result can be worked out.

Write

    distribution(logits, temperature=1.0, top_k=None, top_p=None)

    logits    (..., vocab)    any floating dtype
    returns   (..., vocab)    probabilities, in the dtype of logits

  - In this order: the logits are divided by temperature; only the top_k
    largest stay; softmax; of these probabilities, the most likely ones stay
    until their sum reaches top_p; those that stay are divided by their sum.
  - top_p keeps a token, from the most likely one on, while the mass before
    it is below top_p. So the token with which the sum reaches top_p stays.
  - Tokens that are as likely as the last one that stays, stay as well, for
    top_k and for top_p.
  - None leaves a step out, and a top_k of vocab or more keeps everything.
  - Temperature 0 gives 1 to the first of the largest logits, 0 to the rest.
  - Computed in float32 at least, also for half precision. Logits of any size
    are allowed. No loop over rows or tokens.
  - temperature < 0, top_k < 1, and top_p outside (0, 1] raise ValueError.

    draw(probabilities, u)

    probabilities   (vocab,)
    u               a float in [0, 1)
    returns         an int: how many of the cumulative sums, in the dtype of
                    probabilities, are <= u

    speculate(draft_tokens, draft, target, u, v)

    draft_tokens  (k,)           what the small model has drawn, int64
    draft         (k, vocab)     its probabilities, row i those for token i
    target        (k+1, vocab)   those of the large model
    u             (k,)           a uniform number for each draft token
    v             a float        a uniform number for the last token
    returns       a list of ints: the tokens that are accepted, and one more

  - Draft token i, with probability q in draft and p in target, is accepted
    if u[i]·q < p.
  - At the first refusal, the rest of the draft is dropped. The one more
    token is drawn, with v, from max(target[i] - draft[i], 0), divided by its
    sum.
  - If all are accepted, it is drawn, with v, from target[k].
  - k may be 0.

No argument is modified, and arguments may be views. torch's own ways to draw
are not allowed.

Example

    probabilities [.1, .4, .05, .25, .2], logits their logarithms:

    distribution(logits, top_p=0.7)
        = [0, .4706, 0, .2941, .2353]
    distribution(logits, top_k=3, top_p=0.75)
        = [0, .6154, 0, .3846, 0]

    draw(probabilities, 0.5) = 2, as .1 <= .5 and .5 <= .5, but .55 > .5

    p = [.4, .3, .2, .1], q = [.1, .2, .3, .4]
    the refusal draws from [.75, .25, 0, 0]

Write it by hand. These names of torch are not accepted here: multinomial,
distributions.

What is new: Which of the likely tokens may come next, and how a cheap guess
saves time without changing the law.

From: Fast Inference from Transformers via Speculative Decoding (2023)
"""

import torch
from torch import Tensor


def distribution(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Return the probabilities of the next token, (..., vocab), in the dtype of logits.

    Raises ValueError for a temperature below 0, a top_k below 1, and a top_p outside (0, 1].
    """
    raise NotImplementedError("fill in sampling")


def draw(probabilities: Tensor, u: float) -> int:
    """Return the number of cumulative sums of probabilities, (vocab,), that are at most u."""
    raise NotImplementedError("fill in sampling")


def speculate(
    draft_tokens: Tensor, draft: Tensor, target: Tensor, u: Tensor, v: float
) -> list[int]:
    """Return the draft tokens that are accepted, and one token more.

    draft_tokens and u are (k,), draft is (k, vocab), and target (k + 1, vocab).
    """
    raise NotImplementedError("fill in sampling")
