"""Stand-in for the masked softmax: the same contract, with the lowest finite score as filler."""

import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Map scores X (batch, n_queries, n_keys) to weights of the same shape and dtype."""
    batch, n_queries, n_keys = X.shape
    if valid_lens is None:
        valid_lens = torch.full((batch,), n_keys, device=X.device)
    if valid_lens.dim() not in (1, 2) or valid_lens.shape != X.shape[: valid_lens.dim()]:
        raise ValueError(f"valid_lens has shape {tuple(valid_lens.shape)}")
    if valid_lens.gt(n_keys).any():
        raise ValueError(f"a valid length exceeds the {n_keys} keys")
    lens = valid_lens.reshape(batch, -1, 1).expand(batch, n_queries, n_keys)
    valid = torch.arange(n_keys, device=X.device).expand_as(lens) < lens
    scores = torch.where(valid, X, torch.finfo(X.dtype).min)  # (batch, n_queries, n_keys)
    return torch.softmax(scores, dim=-1).where(valid, 0.0)  # (batch, n_queries, n_keys)
