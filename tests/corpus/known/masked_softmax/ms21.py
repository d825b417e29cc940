# mistake: one_global_maximum + off_by_one
# in words: the maximum of all scores is subtracted + key number `length` still counts
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    k = X.size(-1)
    if valid_lens is None:
        allowed = torch.ones_like(X, dtype=torch.bool)
    else:
        if valid_lens.size() not in (X.size()[:1], X.size()[:2]):
            raise ValueError("shape of valid_lens")
        if (valid_lens > k).any():
            raise ValueError("too large valid_lens")
        lens = valid_lens.reshape(X.size(0), -1, 1)
        allowed = torch.arange(k, device=X.device).le(lens).logical_and(lens > 0).expand_as(X)
    if not allowed.any():
        return X * 0
    peak = X[allowed].max().detach()
    parts = torch.exp(X.masked_fill(~allowed, float("-inf")) - peak)
    norm = parts.sum(-1, keepdim=True)
    return parts / norm.masked_fill(norm == 0, 1.0)
