# mistake: masked_after_softmax
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for every key at or beyond the valid length.

    X is (batch, n_queries, n_keys); valid_lens is None, (batch,) or (batch, n_queries).
    The weights have the shape and dtype of X. Raises ValueError for lengths that do not fit.
    """
    weights = torch.softmax(X, dim=-1)
    if valid_lens is None:
        return weights

    B, Q, K = X.shape
    if valid_lens.dim() == 1 and valid_lens.shape[0] == B:
        lens = valid_lens.view(B, 1, 1) if valid_lens.is_contiguous() else valid_lens.reshape(B, 1, 1)
    elif valid_lens.dim() == 2 and valid_lens.shape == (B, Q):
        lens = valid_lens.unsqueeze(-1)
    else:
        raise ValueError(f"valid_lens has shape {tuple(valid_lens.shape)}")
    if lens.max() > K:
        raise ValueError("length greater than n_keys")

    padding = torch.arange(K, device=X.device).view(1, 1, K) >= lens
    return weights.masked_fill(padding, 0.0)
