"""Scaled dot-product attention on torch.bmm, which refuses by itself what does not fit."""

import math

import torch
from masked_softmax import masked_softmax
from torch import nn


def batched_product(a, b):
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.rate = dropout
        self.attention_weights = None

    def without_padding(self, values, valid_lens):
        """Values of keys beyond every query's length are set to 0."""
        if valid_lens is None:
            return values
        longest = valid_lens if valid_lens.dim() == 1 else valid_lens.max(dim=1).values
        padded = torch.arange(values.shape[1], device=values.device)[None] >= longest[:, None]
        return values.masked_fill(padded[:, :, None], 0)

    def forward(self, queries, keys, values, valid_lens=None):
        scores = torch.bmm(queries / math.sqrt(queries.size(-1)), keys.permute(0, 2, 1))
        self.attention_weights = masked_softmax(scores, valid_lens)
        weights = nn.functional.dropout(self.attention_weights, self.rate, self.training)
        return torch.bmm(weights, self.without_padding(values, valid_lens))
