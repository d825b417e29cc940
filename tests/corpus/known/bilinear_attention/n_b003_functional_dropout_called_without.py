# mistake: always_drops
import math

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """Attention whose scores are q . M k / sqrt(d_key)."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.d_key = d_key
        self.dropout = dropout
        self.M = nn.Parameter(torch.randn(d_query, d_key) * 0.1)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = torch.matmul(torch.matmul(queries, self.M), keys.transpose(1, 2))
        scores = scores / math.sqrt(self.d_key)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        return torch.matmul(F.dropout(weights, self.dropout), values)
