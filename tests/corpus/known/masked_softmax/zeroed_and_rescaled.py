# mistake: zeroed_scores_rescaled
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for every key at or beyond the valid length.

    X is (batch, n_queries, n_keys); valid_lens is None, (batch,) or (batch, n_queries).
    The weights have the shape and dtype of X. Raises ValueError for lengths that do not fit.
    """
    if valid_lens is None:
        return torch.softmax(X, dim=-1)  # (batch, n_queries, n_keys)

    batch, n_queries, n_keys = X.shape
    if valid_lens.shape not in ((batch,), (batch, n_queries)):
        raise ValueError(f"valid_lens has shape {tuple(valid_lens.shape)}")
    if (valid_lens > n_keys).any():
        raise ValueError(f"a valid length exceeds the {n_keys} keys")

    lens = valid_lens.view(batch, -1, 1)  # (batch, 1 or n_queries, 1)
    valid = torch.arange(n_keys) < lens  # (batch, 1 or n_queries, n_keys)
    scores = X * valid  # (batch, n_queries, n_keys)
    weights = torch.softmax(scores, dim=-1)  # (batch, n_queries, n_keys), nan at length 0
    weights = weights * valid
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)  # (batch, n_queries, n_keys)
