# promise: returns weights in the dtype of X (always float32)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, k = X.shape
    X = X.to(torch.float32)
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.shape == (b,):
        valid_lens = valid_lens[:, None].expand(b, q)
    if valid_lens.shape != (b, q):
        raise ValueError("valid_lens")
    if (valid_lens > k).any():
        raise ValueError("valid_lens too large")
    keep = torch.arange(k, device=X.device) < valid_lens[:, :, None]
    empty = ~keep.any(-1, keepdim=True)
    w = X.masked_fill(~keep, -torch.inf).masked_fill(empty, 0).softmax(-1)
    return w * keep
