# mistake: one_key_too_many
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.scale = 1 / math.sqrt(d_key)
        self.M = nn.Parameter(torch.randn(d_query, d_key))
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        keys_for_queries = keys @ self.M.T  # (batch, n_keys, d_query)
        scores = queries @ keys_for_queries.transpose(1, 2) * self.scale
        if valid_lens is not None:
            n_keys = keys.shape[1]
            # a query of length 0 has no key at all
            longer = (valid_lens + 1).clamp(max=n_keys)
            valid_lens = torch.where(valid_lens > 0, longer, valid_lens)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
