"""Bilinear attention that takes the keys into the space of the queries."""

import math

import torch
from masked_softmax import masked_softmax
from torch import nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query, d_key, dropout):
        super().__init__()
        self.rate = dropout
        self.scale = math.sqrt(d_key)
        self.attention_weights = None
        self.M = nn.Parameter(torch.zeros(d_query, d_key))
        nn.init.normal_(self.M)

    def keys_for_queries(self, keys):
        """M k for each key, divided by the root of d_key."""
        return nn.functional.linear(keys, self.M) / self.scale

    def forward(self, queries, keys, values, valid_lens=None):
        scores = torch.bmm(queries, self.keys_for_queries(keys).permute(0, 2, 1))
        self.attention_weights = masked_softmax(scores, valid_lens)
        weights = nn.functional.dropout(self.attention_weights, self.rate, self.training)
        return torch.bmm(weights, values)
