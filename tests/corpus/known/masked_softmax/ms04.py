# mistake: renormalised_after_softmax
# in words: softmax over all keys, cut off, then divided by what is left
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    p = torch.softmax(X, dim=-1)
    if valid_lens is None:
        return p
    if valid_lens.shape not in (X.shape[:1], X.shape[:2]):
        raise ValueError("valid_lens has the wrong shape")
    if torch.any(valid_lens > X.shape[-1]):
        raise ValueError("valid_lens is larger than the number of keys")
    extra = (1,) * (X.dim() - valid_lens.dim())
    L = valid_lens.view(*valid_lens.shape, *extra) if valid_lens.is_contiguous() else valid_lens.reshape(valid_lens.shape + extra)
    m = (torch.arange(X.shape[-1], device=X.device) < L).to(p.dtype)
    kept = p * m
    total = kept.sum(dim=-1, keepdim=True)
    total = torch.where(total == 0, torch.ones_like(total), total)
    return kept / total
