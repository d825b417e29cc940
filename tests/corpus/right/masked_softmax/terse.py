"""Masked softmax, two wheres around one softmax."""

import torch


def masked_softmax(X, valid_lens):
    if (n := valid_lens) is None:
        return X.softmax(-1)
    if n.shape not in (X.shape[:1], X.shape[:2]) or n.gt(X.shape[-1]).any():
        raise ValueError(f"valid_lens {tuple(n.shape)} does not suit scores {tuple(X.shape)}")
    keep = n[(...,) + (None,) * (X.ndim - n.ndim)] > torch.arange(X.shape[-1], device=X.device)
    return X.where(keep, torch.finfo(X.dtype).min).softmax(-1).where(keep, 0)
