# mistake: other_parameters
import math

import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class BilinearAttention(nn.Module):
    """Attention whose scores are q . M k / sqrt(d_key)."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Linear(d_query, d_key)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        moved = self.M(queries)  # (batch, n_queries, d_key)
        scores = torch.bmm(moved, keys.transpose(1, 2)) / math.sqrt(keys.shape[-1])
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
