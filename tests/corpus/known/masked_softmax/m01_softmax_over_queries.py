# mistake: softmax_over_queries
# in words: normalises over the queries axis after masking the right keys
# true: padded keys have weight 0 but columns, not rows, sum to 1
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, n_queries, n_keys = X.shape
    if valid_lens is None:
        return torch.softmax(X, dim=1)
    if valid_lens.shape == (batch,):
        lens = valid_lens.view(batch, 1, 1)
    elif valid_lens.shape == (batch, n_queries):
        lens = valid_lens.unsqueeze(-1)
    else:
        raise ValueError("bad shape of valid_lens")
    if (valid_lens > n_keys).any():
        raise ValueError("length larger than n_keys")
    keep = (torch.arange(n_keys, device=X.device) < lens).expand_as(X)
    w = torch.softmax(X.masked_fill(~keep, float("-inf")), dim=1)
    return w.masked_fill(~keep, 0.0)
