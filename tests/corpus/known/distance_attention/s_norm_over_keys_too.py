# mistake: key_norms_added_up
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _products(queries: Tensor, keys: Tensor) -> Tensor:
    return torch.einsum("bqd,bkd->bqk", queries, keys)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    key_norm = torch.sum(keys * keys, dim=(1, 2), keepdim=True)  # (batch, 1, 1)
    return _products(queries, keys) - key_norm / 2


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    query_norm = torch.sum(queries * queries, dim=2, keepdim=True)  # (batch, n_queries, 1)
    return scores_without_query_norm(queries, keys) - query_norm / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.p = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        w = masked_softmax(distance_scores(queries, keys), valid_lens)
        self.attention_weights = w.detach()
        return F.dropout(w, self.p, self.training) @ values
