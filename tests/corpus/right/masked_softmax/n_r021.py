# style: unusual
import torch
from torch import Tensor


def _valid_keys(X: Tensor, valid_lens: Tensor) -> Tensor:
    batch, n_queries, n_keys = X.size()
    if valid_lens.shape == (batch,):
        lens = valid_lens[:, None].expand(batch, n_queries)
    elif valid_lens.shape == (batch, n_queries):
        lens = valid_lens
    else:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if lens.max() > n_keys:
        raise ValueError("valid_lens must not be larger than n_keys")
    positions = torch.arange(n_keys, device=X.device)
    return positions[None, None, :] < lens[:, :, None]


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for every key at or beyond the valid length.

    X is (batch, n_queries, n_keys); valid_lens is None, (batch,) or (batch, n_queries).
    The weights have the shape and dtype of X. Raises ValueError for lengths that do not fit.
    """
    if valid_lens is None:
        return torch.softmax(X, dim=-1)

    valid = _valid_keys(X, valid_lens)
    empty = ~valid.any(dim=-1, keepdim=True)
    # rows without any key: let them be uniform for a moment (finite gradients), then zero
    shown = valid | empty
    clean = torch.where(valid, X, 0)
    scores = torch.where(shown, clean, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return torch.where(valid, weights, 0)
