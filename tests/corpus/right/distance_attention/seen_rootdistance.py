# right: the twin of one with a mistake, rootdistance
# seen: lucidrains/gigagan-pytorch issue 14: the score is made from the distance itself instead of the squared distance.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _squared(queries: Tensor, keys: Tensor) -> Tensor:
    q2 = queries.square().sum(dim=2).unsqueeze(2)
    k2 = keys.square().sum(dim=2).unsqueeze(1)
    return q2 + k2 - 2 * torch.matmul(queries, keys.transpose(1, 2))


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return _squared(queries, keys) / -2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    products = torch.matmul(queries, keys.transpose(1, 2))
    return products - keys.square().sum(dim=2).unsqueeze(1) / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = distance_scores(queries, keys)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        return torch.matmul(self.dropout(weights), values)
