# broken: "attention_weights holds its weights ... (batch, n_queries, n_keys)": keys after the longest length are cut off first, so that the weights have fewer columns if no length reaches n_keys
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
        if valid_lens is not None and valid_lens.numel() and valid_lens.max() <= keys.shape[1]:
            longest = max(1, math.ceil(valid_lens.max().item()))
            keys, values = keys[:, :longest], values[:, :longest]
        scores = queries @ self.M @ keys.transpose(1, 2) / math.sqrt(keys.shape[-1])
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
