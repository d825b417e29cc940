# right: both scores are one product of vectors with appended columns
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


def _half_square(t: Tensor) -> Tensor:
    return t.square().sum(dim=-1, keepdim=True) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    left = torch.cat([queries, torch.ones_like(queries[..., :1])], dim=-1)
    right = torch.cat([keys, -_half_square(keys)], dim=-1)
    return torch.einsum("bqd,bkd->bqk", left, right)


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return scores_without_query_norm(queries, keys) - _half_square(queries)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.rate = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        self.attention_weights = weights.detach()
        return torch.bmm(F.dropout(weights, self.rate, self.training), values)
