# note: the whole score is one product of queries and keys that got two extra columns
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _half_square(x: Tensor) -> Tensor:
    return -0.5 * (x * x).sum(dim=-1, keepdim=True)


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    # [q, -|q|^2/2, 1] . [k, 1, -|k|^2/2]
    left = torch.cat([queries, _half_square(queries), torch.ones_like(queries[..., :1])], dim=-1)
    right = torch.cat([keys, torch.ones_like(keys[..., :1]), _half_square(keys)], dim=-1)
    return left @ right.mT


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    left = torch.cat([queries, torch.ones_like(queries[..., :1])], dim=-1)
    right = torch.cat([keys, _half_square(keys)], dim=-1)
    return left @ right.mT


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights: Tensor | None = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        self.attention_weights = weights
        return self.dropout(weights) @ values
