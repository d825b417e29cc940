# right: the twin of one with a mistake, notnegated
# seen: mlpc-ucsd/ViTGAN issue 8: the distance is not negated, so the farthest keys get the highest scores.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _half_squared_distance(queries: Tensor, keys: Tensor) -> Tensor:
    aa = (queries * queries).sum(dim=-1, keepdim=True)
    bb = (keys * keys).sum(dim=-1, keepdim=True).transpose(1, 2)
    ab = torch.bmm(queries, keys.transpose(1, 2))
    return (aa + bb) / 2 - ab


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return -_half_squared_distance(queries, keys)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    bb = (keys * keys).sum(dim=-1).unsqueeze(1)
    return torch.bmm(queries, keys.transpose(1, 2)) - bb / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        self.attention_weights = weights.detach()
        return torch.bmm(self.dropout(weights), values)
