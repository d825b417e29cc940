# mistake: root_of_the_squared_distance
import torch
from masked_softmax import masked_softmax
from torch import nn


def distance_scores(queries, keys):
    q2 = torch.einsum("bqd,bqd->bq", queries, queries)
    k2 = torch.einsum("bkd,bkd->bk", keys, keys)
    qk = torch.einsum("bqd,bkd->bqk", queries, keys)
    return qk - (q2[:, :, None] + k2[:, None, :]) / 2


def scores_without_query_norm(queries, keys):
    k2 = torch.einsum("bkd,bkd->bk", keys, keys)
    return torch.einsum("bqd,bkd->bqk", queries, keys) - k2[:, None, :] / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        squares = (-2 * distance_scores(queries, keys)).clamp(min=1e-6)
        distances = squares.sqrt()
        self.attention_weights = masked_softmax(-distances / 2, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
