# right: one more component: [q, 1] . [k, -|k|^2 / 2], so that one product does everything
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """[q, -|q|^2 / 2, 1] . [k, 1, -|k|^2 / 2]."""
    left = torch.cat([queries, _minus_half_square(queries), _one(queries)], dim=-1)
    right = torch.cat([keys, _one(keys), _minus_half_square(keys)], dim=-1)
    return torch.bmm(left, right.mT)


def _minus_half_square(x: Tensor) -> Tensor:
    return x.square().sum(-1, keepdim=True) / -2


def _one(x: Tensor) -> Tensor:
    return x.new_ones(x.shape[:-1] + (1,))


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    left = torch.cat([queries, _one(queries)], dim=-1)
    right = torch.cat([keys, _minus_half_square(keys)], dim=-1)
    return torch.bmm(left, right.mT)


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
