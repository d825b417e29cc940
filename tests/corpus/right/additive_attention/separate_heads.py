"""Additive attention in steps of its own: every pair is a row of a long table."""

import torch
from masked_softmax import masked_softmax
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.rate = dropout
        self.attention_weights = None
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)

    def pairs(self, queries, keys):
        """The sum for each pair, as rows: all keys of the first query, then of the second."""
        n_queries, n_keys = queries.size(1), keys.size(1)
        of_queries = self.W_q(queries).repeat_interleave(n_keys, dim=1)
        of_keys = self.W_k(keys).repeat(1, n_queries, 1)
        return of_queries + of_keys

    def scores(self, queries, keys):
        rows = self.w_v(torch.tanh(self.pairs(queries, keys)))
        return rows.reshape(queries.size(0), queries.size(1), keys.size(1))

    def forward(self, queries, keys, values, valid_lens=None):
        self.attention_weights = masked_softmax(self.scores(queries, keys), valid_lens)
        weights = nn.functional.dropout(self.attention_weights, self.rate, self.training)
        return torch.bmm(weights, values)
