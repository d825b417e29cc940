# mistake: all_differences
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return minus half of the squared distance of each query to each key."""
    difference = queries.unsqueeze(2) - keys.unsqueeze(1)
    return -difference.pow(2).sum(dim=-1) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """Return q . k - |k|^2 / 2 for each query and key: scores with the same softmax."""
    squares = (keys**2).sum(dim=2)
    return torch.bmm(queries, keys.transpose(1, 2)) - 0.5 * squares[:, None, :]


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
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
