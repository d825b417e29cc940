# broken: Gradients reach the inputs of all three: |k|^2 goes through a square root, so a key (or query) of zeros gets the gradient nan
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _half_square(x: Tensor) -> Tensor:
    norm = x.square().sum(-1).sqrt()
    return norm * norm / 2


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return minus half of the squared distance of each query to each key."""
    return scores_without_query_norm(queries, keys) - _half_square(queries).unsqueeze(-1)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """Return q . k - |k|^2 / 2 for each query and key."""
    products = queries @ keys.mT
    return products - _half_square(keys).unsqueeze(-2)


class DistanceAttention(nn.Module):
    """Attention whose scores are -|q - k|^2 / 2. It has no parameters."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = scores_without_query_norm(queries, keys)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        return self.dropout(weights) @ values
