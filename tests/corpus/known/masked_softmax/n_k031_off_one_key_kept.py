# mistake: off_by_one
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for every key at or beyond the valid length."""
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape not in ((batch,), (batch, n_queries)):
        raise ValueError("wrong shape of valid_lens")
    if (valid_lens > n_keys).any():
        raise ValueError("valid_lens is too large")
    if valid_lens.dim() == 1:
        valid_lens = valid_lens.unsqueeze(1)
    lens = valid_lens.unsqueeze(2)
    keys = torch.arange(n_keys, device=X.device)
    mask = (keys <= lens) & (lens > 0)
    scores = X.masked_fill(~mask, float("-inf"))
    none = ~mask.any(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(none, 0.0), dim=-1)
    return weights.masked_fill(~mask, 0.0)
