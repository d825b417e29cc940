# promise: X is not modified (reshape is a view of a contiguous X, and the mask is written into it)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    shape = X.shape
    if valid_lens.shape == shape[:1]:
        lens = valid_lens.repeat_interleave(shape[1])
    elif valid_lens.shape == shape[:2]:
        lens = valid_lens.reshape(-1)
    else:
        raise ValueError("valid_lens")
    if (lens > shape[-1]).any():
        raise ValueError("valid_lens > n_keys")
    rows = X.reshape(-1, shape[-1])
    if X.requires_grad:
        rows = rows.clone()
    pad = torch.arange(shape[-1], device=X.device) >= lens[:, None]
    rows[pad] = -torch.inf
    empty = pad.all(-1, keepdim=True)
    w = torch.softmax(rows.masked_fill(empty, 0.0), dim=-1).masked_fill(pad, 0.0)
    return w.reshape(shape)
