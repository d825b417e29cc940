import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)

    if valid_lens.shape not in (X.shape[:1], X.shape[:2]):
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if valid_lens.numel() and valid_lens.max() > X.shape[2]:
        raise ValueError("valid_lens must not be greater than n_keys")

    while valid_lens.dim() < 3:
        valid_lens = valid_lens.unsqueeze(-1)
    keys = torch.arange(X.shape[2], device=X.device, dtype=torch.float64)
    blocked = keys >= valid_lens.to(torch.float64)
    weights = torch.softmax(X.masked_fill(blocked, -torch.inf), dim=-1)
    # length 0 gives nan -> zeros; masked_fill also stops the nan in the backward pass
    return torch.nan_to_num(weights, nan=0.0)
