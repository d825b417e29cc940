"""Stand-in for masked softmax: the same contract, computed by torch's own masked softmax."""

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
    weights = torch.masked.softmax(X, -1, mask=valid)  # (batch, n_queries, n_keys), nan at length 0
    return weights.masked_fill(~valid, 0.0)  # (batch, n_queries, n_keys)
