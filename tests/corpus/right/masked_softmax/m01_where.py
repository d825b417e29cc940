import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape == (batch,):
        lens = valid_lens[:, None, None]
    elif valid_lens.shape == (batch, n_queries):
        lens = valid_lens[:, :, None]
    else:
        raise ValueError(f"valid_lens of shape {tuple(valid_lens.shape)}")
    if (valid_lens > n_keys).any():
        raise ValueError("a length is greater than n_keys")
    valid = (torch.arange(n_keys, device=X.device) < lens).expand_as(X)
    some = valid.any(-1, keepdim=True)
    Y = torch.where(valid, X, -torch.inf)
    Y = torch.where(some, Y, 0.0)
    return torch.where(valid, Y.softmax(-1), 0.0)
