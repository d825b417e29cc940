# note: M is applied to the keys (M k) instead of the queries, transposed products in numpy style, and dropout is written by hand with bernoulli
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def drop(w: Tensor, rate: float) -> Tensor:
    if rate <= 0:
        return w
    if rate >= 1:
        return w * 0
    keep = torch.bernoulli(torch.full_like(w, 1 - rate, requires_grad=False))
    return w * keep / (1 - rate)


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key) / math.sqrt(d_query))
        self.dropout = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        Mk = nn.functional.linear(keys, self.M)  # (batch, n_keys, d_query)
        scores = (Mk @ queries.mT).mT / math.sqrt(keys.size(-1))
        alpha = masked_softmax(scores, valid_lens)
        self.attention_weights = alpha.detach().clone()
        if self.training:
            alpha = drop(alpha, self.dropout)
        return alpha @ values
