# mistake: scores_reshaped
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key) / math.sqrt(d_query))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        batch, n_queries, _ = queries.shape
        table = keys @ (self.M.T @ queries.transpose(1, 2))
        scores = table.reshape(batch, n_queries, keys.size(1)) / keys.size(2) ** 0.5
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
