"""Reference solution: nucleus filtering by the probability before each token."""

import torch
from torch import Tensor


def nucleus(logits: Tensor, p: float) -> Tensor:
    """Return the logits with all but the smallest likely set of each row set to -inf.

    logits and the output are (..., n_vocab). The most likely tokens are kept, of equal ones those
    with the lower index, until their probabilities add up to p. Raises ValueError for a p that is
    not above 0 and at most 1.
    """
    # --- solution
    if not 0 < p <= 1:
        raise ValueError(f"p is {p}, and must be above 0 and at most 1")
    probs = torch.softmax(logits, dim=-1)  # (..., n_vocab)
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)  # (..., n_vocab) each
    before = ordered.cumsum(dim=-1) - ordered  # (..., n_vocab)
    late = (before >= p) & (p < 1)  # (..., n_vocab); a sum may round to 1 before the last token
    outside = torch.zeros_like(late).scatter(-1, order, late)  # (..., n_vocab), in place again
    return logits.masked_fill(outside, -torch.inf)  # (..., n_vocab)
    # --- end
