# mistake: double
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries, keys):
    # |q - k|^2 = |q|^2 + |k|^2 - 2 q.k
    qq = torch.einsum("bqd,bqd->bq", queries, queries)[:, :, None]
    kk = torch.einsum("bkd,bkd->bk", keys, keys)[:, None, :]
    qk = torch.einsum("bqd,bkd->bqk", queries, keys)
    return -(qq + kk - 2 * qk)


def scores_without_query_norm(queries, keys):
    kk = torch.einsum("bkd,bkd->bk", keys, keys)[:, None, :]
    qk = torch.einsum("bqd,bkd->bqk", queries, keys)
    return -(kk - 2 * qk)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        self.attention_weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        return self.dropout(self.attention_weights) @ values
