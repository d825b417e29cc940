# broken: "None of the three makes a tensor of n_queries * n_keys * d numbers": scores_without_query_norm does, by k . (q - k/2) with broadcasting
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return minus half of the squared distance of each query to each key."""
    query_norm = (queries**2).sum(dim=-1, keepdim=True)
    key_norm = (keys**2).sum(dim=-1).unsqueeze(1)
    return queries @ keys.transpose(1, 2) - key_norm / 2 - query_norm / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """Return q . k - |k|^2 / 2 for each query and key."""
    k = keys.unsqueeze(1)
    return (k * (queries.unsqueeze(2) - k / 2)).sum(dim=-1)


class DistanceAttention(nn.Module):
    """Attention whose scores are -|q - k|^2 / 2. It has no parameters."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = scores_without_query_norm(queries, keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
