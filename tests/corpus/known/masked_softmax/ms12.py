# mistake: writes_into_argument
# in words: assigns -inf into a reshape, which is the caller's own memory
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.dim() == 1 and len(valid_lens) == batch:
        lens = valid_lens.repeat_interleave(n_queries)
    elif valid_lens.dim() == 2 and valid_lens.shape == (batch, n_queries):
        lens = valid_lens.flatten()
    else:
        raise ValueError("bad valid_lens")
    if (lens > n_keys).any():
        raise ValueError("bad valid_lens")
    rows = X.reshape(batch * n_queries, n_keys)
    pad = torch.arange(n_keys, device=X.device)[None] >= lens[:, None]
    rows[pad] = float("-inf")
    w = torch.softmax(rows, dim=-1)
    w = torch.where(pad, torch.zeros_like(w), w)
    return w.reshape(batch, n_queries, n_keys)
