# note: torch.baddbmm adds the key norms while it multiplies, norms come from einsum with repeated letters, the module is a subclass of nn.Dropout
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _sq(x: Tensor) -> Tensor:
    return torch.einsum("bnd,bnd->bn", x, x)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    return torch.baddbmm(_sq(keys)[:, None, :], queries, keys.transpose(1, 2), beta=-0.5)


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return scores_without_query_norm(queries, keys) - _sq(queries)[:, :, None] / 2


class DistanceAttention(nn.Dropout):
    def __init__(self, dropout: float):
        super().__init__(p=dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        w = masked_softmax(distance_scores(queries, keys), valid_lens)
        self.attention_weights = w.detach()
        return torch.einsum("bqk,bkv->bqv", super().forward(w), values)
