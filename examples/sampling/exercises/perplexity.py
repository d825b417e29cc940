r"""# Perplexity

A language model reads a sentence and guesses, at each token, which token comes
next. Its perplexity says how well it guesses: a model that hesitates evenly
between n tokens has perplexity n.

    loss = mean over b and t of -log softmax(logits[b, t])[tokens[b, t + 1]]
    PPL  = exp(loss)

The logits at token t are the guess at token t + 1. So the first token is never
guessed, and the logits at the last token are not used.

Write

    perplexity(logits, tokens, pad=-100)

    logits   (batch, n_tokens, n_vocab)   any floating dtype
    tokens   (batch, n_tokens)            int64
    pad      an int                       the token that marks padding
    returns  ()                           dtype of logits

Build on your own cross_entropy: it takes the mean, and leaves padding out.

Requirements
  - There is one mean, over all guessed tokens of the batch that are not
    padding, and one exponential. The mean of the perplexities of sentences
    or tokens is another number.
  - pad may be any int, also that of a token of the vocabulary.
  - If there is nothing to guess, because there is one token or all others are
    padding, the perplexity is 1.
  - Tokens of any other shape than the first two axes of logits are refused:
    the function raises ValueError.
  - Gradients reach the logits. Neither argument is modified; both may be
    views, such as transposed tensors.
  - No Python loop runs over batch, tokens or vocabulary.

Example

    logits = tensor([[[0., 0., 0.], [1., 2., 3.], [9., 0., 0.]]])
    tokens = tensor([[1, 0, 2]])

    guesses at tokens 0 and 2   losses 1.0986 and 0.4076, mean 0.7531
    perplexity(logits, tokens)  = 2.1236

Write it by hand. These names of torch are not accepted here: cross_entropy,
CrossEntropyLoss, nll_loss, NLLLoss.
"""

import torch
from log_loss import log_loss
from torch import Tensor


def perplexity(logits: Tensor, tokens: Tensor, pad: int = -100) -> Tensor:
    """Return the exponential of the mean loss of all guesses at tokens that are not `pad`.

    logits is (batch, n_tokens, n_vocab) and tokens (batch, n_tokens); the perplexity is () and has
    the dtype of logits. Raises ValueError for tokens of another shape.
    """
    raise NotImplementedError("fill in perplexity")
