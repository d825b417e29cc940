"""The contract of masked_softmax, computed in another way, for the exercises that build on it."""

import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return weights of the shape of X: the softmax over the valid keys of each query, else 0."""
    if X.dim() != 3:
        raise ValueError("X must have the axes batch, queries, keys")
    batch, n_queries, n_keys = X.shape
    if valid_lens is None:
        valid_lens = torch.full((batch,), n_keys, device=X.device)  # (batch,)
    if tuple(valid_lens.shape) not in {(batch,), (batch, n_queries)}:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if (valid_lens > n_keys).any():
        raise ValueError("a length is greater than the number of keys")
    lens = valid_lens.reshape(batch, -1, 1)  # (batch, 1 or n_queries, 1)
    valid = torch.arange(n_keys, device=X.device) < lens  # (batch, 1 or n_queries, n_keys)
    valid = valid.expand_as(X)  # (batch, n_queries, n_keys)
    lowest = torch.finfo(X.dtype).min
    kept = torch.where(valid, X, lowest)  # (batch, n_queries, n_keys)
    shifted = kept - kept.detach().amax(dim=-1, keepdim=True)  # (batch, n_queries, n_keys)
    # A hidden score is 0 before exp and after it, so that no gradient is 0 times inf.
    exponents = torch.where(valid, torch.where(valid, shifted, 0.0).exp(), 0.0)
    totals = exponents.sum(dim=-1, keepdim=True)  # (batch, n_queries, 1)
    return exponents / torch.where(totals > 0, totals, 1.0)  # (batch, n_queries, n_keys)
