# broken: "None of the three makes a tensor of n_queries * n_keys * d numbers ..., if d is larger than 4": distance_scores makes all differences for d up to 8
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return minus half of the squared distance of each query to each key."""
    if queries.shape[-1] <= 8:
        return -(queries[:, :, None] - keys[:, None]).pow(2).sum(-1) / 2
    return scores_without_query_norm(queries, keys) - (queries * queries).sum(-1)[:, :, None] / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """Return q . k - |k|^2 / 2 for each query and key: scores with the same softmax."""
    return queries @ keys.transpose(1, 2) - (keys * keys).sum(-1)[:, None, :] / 2


class DistanceAttention(nn.Module):
    """Attention whose scores are -|q - k|^2 / 2. It has no parameters."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return the weighted mean of the values for each query."""
        scores = scores_without_query_norm(queries, keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
