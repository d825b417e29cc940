# mistake: nan_gradient_at_length_zero
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for padded keys."""
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape == (batch,):
        lens = valid_lens[:, None, None]
    elif valid_lens.shape == (batch, n_queries):
        lens = valid_lens[:, :, None]
    else:
        raise ValueError(f"valid_lens has the shape {tuple(valid_lens.shape)}")
    if (valid_lens > n_keys).any():
        raise ValueError("a length is greater than n_keys")
    lens = lens.to(torch.float64)
    valid = torch.arange(n_keys, device=X.device) < lens
    valid = valid.expand(batch, n_queries, n_keys)
    penalty = torch.zeros_like(X).masked_fill(~valid, float("-inf"))
    return torch.softmax(X + penalty, dim=-1).nan_to_num(0.0)
