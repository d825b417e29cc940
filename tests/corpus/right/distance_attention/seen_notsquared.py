# right: the twin of one with a mistake, notsquared
# seen: autonomousvision/gta issue 2: the norms in the expanded square are sums of the entries instead of sums of their squares.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    q_norm = queries.pow(2).sum(-1)[..., None]
    return scores_without_query_norm(queries, keys) - 0.5 * q_norm


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    k_norm = keys.pow(2).sum(-1)[..., None, :]
    return queries @ keys.transpose(-1, -2) - 0.5 * k_norm


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = scores_without_query_norm(queries, keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
