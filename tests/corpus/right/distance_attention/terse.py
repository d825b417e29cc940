"""Distance attention around one baddbmm that starts at the norms of the keys."""

from masked_softmax import masked_softmax
from torch import nn


def scores_without_query_norm(queries, keys):
    return keys.square().sum(-1)[:, None].baddbmm(queries, keys.mT, beta=-0.5)


def distance_scores(queries, keys):
    return scores_without_query_norm(queries, keys) - queries.square().sum(-1)[..., None] / 2


class DistanceAttention(nn.Dropout):
    def __init__(self, dropout):
        super().__init__(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        s = scores_without_query_norm(queries, keys)
        w = self.attention_weights = masked_softmax(s, valid_lens)
        return super().forward(w) @ values
