# mistake: scaled
import math

import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    qq = queries.square().sum(2)[:, :, None]
    return scores_without_query_norm(queries, keys) - 0.5 * qq


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """q . k - |k|^2 / 2."""
    return queries @ keys.transpose(1, 2) - (keys**2).sum(dim=-1).unsqueeze(1) / 2


class DistanceAttention(nn.Module):
    """Near keys get much weight."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = scores_without_query_norm(queries, keys) / math.sqrt(queries.shape[-1])
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
