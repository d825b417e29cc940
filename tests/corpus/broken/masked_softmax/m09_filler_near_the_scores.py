# promise: the weight of every padded key must be exactly 0 (filler is the row's minimum minus 30; about 1e-14 remains)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, n = X.shape
    if valid_lens is None:
        return torch.softmax(X, -1)
    if valid_lens.shape == (b,):
        lens = valid_lens[:, None, None]
    elif valid_lens.shape == (b, q):
        lens = valid_lens[..., None]
    else:
        raise ValueError("wrong shape")
    if (lens > n).any():
        raise ValueError("wrong length")
    keep = (torch.arange(n, device=X.device) < lens).expand(b, q, n)
    lowest = X.masked_fill(~keep, torch.inf).amin(-1, keepdim=True).detach()
    lowest = lowest.masked_fill(lowest.isinf(), 0.0)
    w = torch.softmax(torch.where(keep, X, lowest - 30), dim=-1)
    return w * keep.any(-1, keepdim=True)
