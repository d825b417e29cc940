# promise: returns (batch, n_queries, n_keys) (with one query the axis is lost)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, n = X.shape
    if valid_lens is None:
        return X.softmax(-1)
    if valid_lens.shape != (b,) and valid_lens.shape != (b, q):
        raise ValueError("valid_lens")
    if (valid_lens > n).any():
        raise ValueError("valid_lens too long")
    lens = valid_lens.reshape(b, -1, 1).expand(b, q, 1)
    pad = torch.arange(n, device=X.device) >= lens
    alive = ~pad.all(-1, keepdim=True)
    w = X.masked_fill(pad & alive, -torch.inf).masked_fill(~alive, 0.0).softmax(-1)
    return torch.where(pad, torch.zeros_like(w), w).squeeze(1)
