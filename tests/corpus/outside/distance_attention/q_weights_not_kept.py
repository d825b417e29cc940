# mistake: the weights are kept under another name, so attention_weights is missing
import torch
from masked_softmax import masked_softmax
from torch import nn


def distance_scores(queries, keys):
    gram = queries @ keys.transpose(-1, -2)
    return gram - 0.5 * queries.square().sum(-1, True) - 0.5 * keys.square().sum(-1, True).mT


def scores_without_query_norm(queries, keys):
    gram = queries @ keys.transpose(-1, -2)
    return gram - 0.5 * keys.square().sum(-1, True).mT


class DistanceAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attn = None

    def forward(self, queries, keys, values, valid_lens=None):
        self.attn = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        return torch.bmm(self.dropout(self.attn), values)
