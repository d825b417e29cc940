# mistake: scaled
# the module divides the scores by the root of d before the softmax
import math

from masked_softmax import masked_softmax
from torch import Tensor, nn


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    half_norms = keys.pow(2).sum(dim=2).div(2)
    return queries.matmul(keys.transpose(2, 1)).sub(half_norms.unsqueeze(1))


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    half_norms = queries.pow(2).sum(dim=2).div(2)
    return scores_without_query_norm(queries, keys).sub(half_norms.unsqueeze(2))


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        scores = distance_scores(queries, keys) / math.sqrt(queries.size(-1))
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights).matmul(values)
