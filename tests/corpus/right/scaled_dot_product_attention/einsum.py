"""Scaled dot-product attention with einsum and a mask of its own."""

import torch
from torch import nn


def batched_product(a, b):
    if a.ndim != 3 or b.ndim != 3:
        raise ValueError("two tensors of three axes are needed")
    if a.size(0) != b.size(0) or a.size(2) != b.size(1):
        raise ValueError(f"sizes do not fit: {tuple(a.shape)}, {tuple(b.shape)}")
    return torch.einsum("bnm,bmp->bnp", a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.drop = nn.Dropout(p=dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        b, q, d = queries.shape
        k = keys.shape[1]
        keep = torch.ones(b, q, k, dtype=torch.bool)
        if valid_lens is not None:
            if tuple(valid_lens.shape) not in {(b,), (b, q)} or (valid_lens > k).any():
                raise ValueError("valid_lens does not fit")
            lens = valid_lens[:, None] if valid_lens.ndim == 1 else valid_lens
            keep = torch.arange(k) < lens[:, :, None]
            keep = keep.expand(b, q, k)
        scores = torch.einsum("bqd,bkd->bqk", queries, keys) * d**-0.5
        scores = scores.masked_fill(~keep, torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1) * keep
        self.attention_weights = weights.detach()
        values = torch.where(keep.any(1)[:, :, None], values, 0.0)
        return torch.einsum("bqk,bkv->bqv", self.drop(weights), values)
