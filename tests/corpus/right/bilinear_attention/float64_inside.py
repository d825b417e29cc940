# right: computed in float64 inside, cast back to the dtype of the queries
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from masked_softmax import masked_softmax


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        scale = (6 / (d_query + d_key)) ** 0.5
        self.register_parameter("M", nn.Parameter(torch.empty(d_query, d_key).uniform_(-scale, scale)))
        self.dropout = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        dtype = queries.dtype
        q, m, k, v = (x.double() for x in (queries, self.M, keys, values))
        weights = masked_softmax((q @ m @ k.mT).div(math.sqrt(m.size(1))), valid_lens)
        self.attention_weights = weights.to(dtype)
        return (F.dropout(weights, self.dropout, self.training) @ v).to(dtype)
