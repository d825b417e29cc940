# style: unusual
import torch
from torch import Tensor, nn
from masked_softmax import masked_softmax


def _half_square(x: Tensor) -> Tensor:
    return 0.5 * (x * x).sum(-1)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """q . k - |k|^2 / 2 as one product: [q, 1] . [k, -|k|^2 / 2]"""
    ones = torch.ones_like(queries[..., :1])
    q = torch.cat([queries, ones], dim=-1)
    k = torch.cat([keys, -_half_square(keys).unsqueeze(-1)], dim=-1)
    return torch.einsum("bqd,bkd->bqk", q, k)


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return scores_without_query_norm(queries, keys) - _half_square(queries)[..., None]


class DistanceAttention(nn.Module):
    """Gaussian kernel regression, more or less."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        self.attention_weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        return self.dropout(self.attention_weights) @ values
