"""Reference solution: perplexity as the exponential of one mean loss."""

import torch
from log_loss import log_loss
from torch import Tensor


def perplexity(logits: Tensor, tokens: Tensor, pad: int = -100) -> Tensor:
    """Return the exponential of the mean loss of all guesses at tokens that are not `pad`.

    logits is (batch, n_tokens, n_vocab) and tokens (batch, n_tokens); the perplexity is () and has
    the dtype of logits. Raises ValueError for tokens of another shape.
    """
    # --- solution
    predicted = logits[:, :-1]  # (batch, n_tokens - 1, n_vocab)
    wanted = tokens[:, 1:]  # (batch, n_tokens - 1)
    loss = log_loss(predicted, wanted, pad)  # ()
    return torch.exp(loss)  # ()
    # --- end
