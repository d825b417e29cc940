# right: flattened rows and functional linear with M transposed, small methods
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from masked_softmax import masked_softmax


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(nn.init.orthogonal_(torch.empty(d_query, d_key)))
        self.dropout = nn.Dropout(dropout)
        self.attention_weights: Tensor | None = None

    def into_key_space(self, queries: Tensor) -> Tensor:
        batch, n_queries, d_query = queries.shape
        rows = queries.reshape(batch * n_queries, d_query)
        return F.linear(rows, self.M.T).reshape(batch, n_queries, self.M.shape[1])

    def compare(self, queries: Tensor, keys: Tensor) -> Tensor:
        return torch.matmul(keys, self.into_key_space(queries).mT).mT / math.sqrt(keys.shape[2])

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        self.attention_weights = masked_softmax(self.compare(queries, keys), valid_lens)
        dropped = self.dropout(self.attention_weights)
        return torch.matmul(values.mT, dropped.mT).mT
