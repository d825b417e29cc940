# mistake: dropout_on_output
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """Attention whose scores are q . M k / sqrt(d_key)."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key) / math.sqrt(d_query))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = keys.shape[-1]
        scores = torch.bmm(queries @ self.M, keys.transpose(1, 2)) / math.sqrt(d_key)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        return self.dropout(torch.bmm(weights, values))
