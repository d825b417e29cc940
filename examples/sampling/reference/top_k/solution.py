"""Reference solution: top-k by the rank of each logit."""

import torch
from torch import Tensor


def top_k(logits: Tensor, k: int) -> Tensor:
    """Return the logits with all but the k largest of each row set to -inf.

    logits and the output are (..., n_vocab); of equal logits, those with the lower index are kept.
    Raises ValueError for a k below 1.
    """
    # --- solution
    if k < 1:
        raise ValueError(f"k is {k}, and must be at least 1")
    order = logits.argsort(dim=-1, descending=True, stable=True)  # (..., n_vocab)
    rank = order.argsort(dim=-1)  # (..., n_vocab), the inverse of the permutation
    return logits.masked_fill(rank >= k, -torch.inf)  # (..., n_vocab)
    # --- end
