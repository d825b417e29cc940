# mistake: attends_to_the_farthest
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    q_norm = (queries**2).sum(dim=-1).unsqueeze(2)
    return scores_without_query_norm(queries, keys) + q_norm / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    k_norm = (keys**2).sum(dim=-1).unsqueeze(1)
    return k_norm / 2 - torch.bmm(queries, keys.transpose(1, 2))


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
        return torch.bmm(self.dropout(self.attention_weights), values)
