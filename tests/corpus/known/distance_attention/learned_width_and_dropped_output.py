# mistake: with_parameter + dropout_on_output
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    qq = queries.square().sum(2)[:, :, None]
    return scores_without_query_norm(queries, keys) - 0.5 * qq


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    half_kk = 0.5 * keys.square().sum(2)[:, None, :]
    return torch.bmm(queries, keys.mT) - half_kk


class DistanceAttention(nn.Module):
    """Kernel with a width that is learned."""

    def __init__(self, dropout: float):
        super().__init__()
        self.width = nn.Parameter(torch.ones(1))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = distance_scores(queries, keys) / self.width.to(queries.dtype) ** 2
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(torch.bmm(self.attention_weights, values))
