# mistake: padded_scores_of_zero
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """Attention whose scores are q . M k / sqrt(d_key)."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.rand(d_query, d_key) - 0.5)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = keys.shape[-1]
        scores = queries @ self.M @ keys.transpose(1, 2) / math.sqrt(d_key)
        mask = masked_softmax(torch.zeros_like(scores), valid_lens) > 0
        self.attention_weights = torch.softmax(scores * mask, dim=-1)
        return self.dropout(self.attention_weights) @ values
