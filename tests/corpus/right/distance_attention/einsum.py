"""Distance attention: each of the three terms of the square is an einsum."""

import torch
from masked_softmax import masked_softmax
from torch import nn


def half_norms(x):
    return torch.einsum("bnd,bnd->bn", x, x) / 2


def scores_without_query_norm(queries, keys):
    return torch.einsum("bqd,bkd->bqk", queries, keys) - half_norms(keys)[:, None, :]


def distance_scores(queries, keys):
    products = torch.einsum("bqd,bkd->bqk", queries, keys)
    return products - half_norms(keys)[:, None, :] - half_norms(queries)[:, :, None]


class DistanceAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.drop = nn.Dropout(p=dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        self.attention_weights = weights.detach()
        return torch.einsum("bqk,bkv->bqv", self.drop(weights), values)
