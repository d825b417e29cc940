"""Additive attention in einsum notation (h hidden), with exponentials under a mask of its own."""

import torch
from torch import nn


def kept_keys(lens, b, q, k):
    """Return 1 where a query may attend to a key, else 0."""
    if lens is None:
        return torch.ones(b, q, k, dtype=torch.bool)
    if tuple(lens.shape) not in {(b,), (b, q)} or (lens > k).any():
        raise ValueError(f"valid_lens {tuple(lens.shape)} does not fit")
    lens = lens[:, None] if lens.ndim == 1 else lens
    return (torch.arange(k) < lens[:, :, None]).expand(b, q, k)


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.drop = nn.Dropout(p=dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        left = torch.einsum("bqi,hi->bqh", queries, self.W_q.weight)
        right = torch.einsum("bkj,hj->bkh", keys, self.W_k.weight)
        hidden = torch.tanh(left[:, :, None] + right[:, None])
        scores = torch.einsum("bqkh,oh->bqk", hidden, self.w_v.weight)
        keep = kept_keys(valid_lens, *scores.shape)
        scores = scores.masked_fill(~keep, torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1) * keep
        self.attention_weights = weights.detach()
        return torch.einsum("bqk,bkv->bqv", self.drop(weights), values)
