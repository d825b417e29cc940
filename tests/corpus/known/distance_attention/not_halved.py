# mistake: double
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    qq = queries.square().sum(-1)[..., None]
    return scores_without_query_norm(queries, keys) - qq


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    kk = keys.square().sum(-1)[:, None]
    return 2 * queries @ keys.mT - kk


class DistanceAttention(nn.Module):
    """Near keys get much weight."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = scores_without_query_norm(queries, keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
