import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape != (batch,) and valid_lens.shape != (batch, n_queries)
        raise ValueError("shape of valid_lens")
    if (valid_lens > n_keys).any():
        raise ValueError("valid_lens too large")
    if valid_lens.ndim == 1:
        valid_lens = valid_lens[:, None]
    keep = torch.arange(n_keys) < valid_lens[:, :, None]
    weights = torch.softmax(X.masked_fill(~keep, -torch.inf), dim=-1)
    return weights.masked_fill(~keep, 0)
