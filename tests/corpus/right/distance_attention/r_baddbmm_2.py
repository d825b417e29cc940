import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _half_square(t: Tensor) -> Tensor:
    return t.square().sum(dim=-1) / 2


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return scores_without_query_norm(queries, keys) - _half_square(queries).unsqueeze(-1)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    return torch.baddbmm(_half_square(keys).unsqueeze(1), queries, keys.mT, beta=-1)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        w = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        self.attention_weights = w.detach()
        return torch.bmm(F.dropout(w, p=self.rate, training=self.training), values)
