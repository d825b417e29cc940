# right: computed in float64 inside and cast back
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return _scores(queries.double(), keys.double(), 1.0).to(queries.dtype)


def _scores(q: Tensor, k: Tensor, with_query: float) -> Tensor:
    """q . k - |k|^2 / 2 - with_query * |q|^2 / 2."""
    half = lambda x: torch.einsum("bnd,bnd->bn", x, x) / 2  # noqa: E731
    return torch.einsum("bqd,bkd->bqk", q, k) - half(k)[:, None, :] - with_query * half(q)[:, :, None]


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    return _scores(queries.double(), keys.double(), 0.0).to(queries.dtype)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(_scores(queries.double(), keys.double(), 1.0), valid_lens)
        self.attention_weights = weights.to(values.dtype)
        return (F.dropout(weights, self.rate, self.training) @ values.double()).to(values.dtype)
