"""Bilinear attention: one einsum scores all pairs, one adds up the values."""

import torch
from masked_softmax import masked_softmax
from torch import nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query, d_key, dropout):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key) * d_query**-0.5)
        self.drop = nn.Dropout(p=dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        scores = torch.einsum("bqi,ij,bkj->bqk", queries, self.M, keys) * keys.shape[-1] ** -0.5
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        return torch.einsum("bqk,bkv->bqv", self.drop(weights), values)
