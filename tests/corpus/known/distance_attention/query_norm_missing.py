# mistake: query_norms_forgotten
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """The norm of the query does not matter for the softmax."""
    return torch.bmm(queries, keys.transpose(1, 2)) - keys.square().sum(-1).unsqueeze(1) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    half_kk = 0.5 * keys.square().sum(2)[:, None, :]
    return torch.bmm(queries, keys.mT) - half_kk


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
