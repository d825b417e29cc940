# mistake: norms_detached
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


@torch.no_grad()
def half_norm(x: Tensor) -> Tensor:
    """|x|^2 / 2 of each vector"""
    return 0.5 * torch.linalg.vector_norm(x, dim=-1) ** 2


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    dots = queries @ keys.transpose(-1, -2)
    return dots - half_norm(keys)[:, None, :] - half_norm(queries)[:, :, None]


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    dots = queries @ keys.transpose(-1, -2)
    return dots - half_norm(keys)[:, None, :]


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = scores_without_query_norm(queries, keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights).matmul(values)
