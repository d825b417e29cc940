# mistake: all_differences
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    difference = queries.unsqueeze(2) - keys.unsqueeze(1)
    return -(difference**2).sum(dim=-1) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    qk = torch.einsum("bqd,bkd->bqk", queries, keys)
    kk = torch.einsum("bkd,bkd->bk", keys, keys)
    return qk - kk.unsqueeze(-2) / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.p = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        w = masked_softmax(distance_scores(queries, keys), valid_lens)
        self.attention_weights = w
        w = F.dropout(w, self.p, training=self.training)
        return w @ values
