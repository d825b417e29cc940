"""Distance attention with a table of squared distances, term by term."""

import torch
from masked_softmax import masked_softmax
from torch import nn


def squared_lengths(vectors):
    return (vectors * vectors).sum(dim=2)


def distance_scores(queries, keys):
    of_queries = squared_lengths(queries).unsqueeze(2)
    of_keys = squared_lengths(keys).unsqueeze(1)
    products = torch.bmm(queries, keys.permute(0, 2, 1))
    return -0.5 * (of_queries - 2 * products + of_keys)


def scores_without_query_norm(queries, keys):
    return distance_scores(queries, keys) + 0.5 * squared_lengths(queries).unsqueeze(2)


class DistanceAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.rate = dropout
        self.attention_weights = None

    def forward(self, queries, keys, values, valid_lens=None):
        self.attention_weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        weights = nn.functional.dropout(self.attention_weights, self.rate, self.training)
        return torch.bmm(weights, values)
