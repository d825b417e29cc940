import torch
from masked_softmax import masked_softmax
from torch import nn
from torch.nn import functional as F


def scores_without_query_norm(queries, keys):
    key_term = keys.square().sum(dim=2).unsqueeze(1)  # (batch, 1, n_keys)
    return torch.baddbmm(key_term, queries, keys.transpose(1, 2), beta=-0.5)


def distance_scores(queries, keys):
    query_term = queries.square().sum(dim=2, keepdim=True)  # (batch, n_queries, 1)
    return scores_without_query_norm(queries, keys).sub(query_term, alpha=0.5)


class DistanceAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.rate = float(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        setattr(self, "attention_weights", weights.detach().clone())
        return F.dropout(weights, p=self.rate, training=self.training).matmul(values)
