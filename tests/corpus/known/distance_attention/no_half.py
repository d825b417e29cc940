# mistake: double
# the scores are minus the squared distance, without the half (and 2 q . k - |k|^2 in the second function)
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    return 2 * queries @ keys.mT - keys.square().sum(-1).unsqueeze(1)


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return scores_without_query_norm(queries, keys) - queries.square().sum(-1, keepdim=True)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        self.attention_weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
