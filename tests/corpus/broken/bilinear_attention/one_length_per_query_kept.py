# broken: "each weight becomes 0 with the probability dropout": with valid_lens of the shape (batch, n_queries) nothing is dropped in training
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
        """Return the weighted mean of the values for each query."""
        scores = queries @ self.M @ keys.transpose(1, 2) / math.sqrt(keys.shape[-1])
        self.attention_weights = masked_softmax(scores, valid_lens)
        if valid_lens is not None and valid_lens.dim() == 2:
            return self.attention_weights @ values
        return self.dropout(self.attention_weights) @ values
