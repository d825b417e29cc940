# broken: None of the three makes a tensor of n_queries * n_keys * d numbers: with valid_lens (batch, n_queries) the module makes a copy of the keys for each query, to set the padding to 0
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _half_square(x: Tensor) -> Tensor:
    return x.square().sum(-1) / 2


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
        if valid_lens is not None and valid_lens.dim() == 2:
            padding = torch.arange(keys.shape[1], device=keys.device) >= valid_lens.unsqueeze(-1)
            own = keys.unsqueeze(1).masked_fill(padding.unsqueeze(-1), 0.0)
            scores = (own @ queries.unsqueeze(-1)).squeeze(-1) - _half_square(own)
        else:
            scores = scores_without_query_norm(queries, keys)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        return self.dropout(weights) @ values
