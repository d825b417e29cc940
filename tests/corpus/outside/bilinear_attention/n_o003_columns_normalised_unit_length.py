# mistake: not in the catalogue: The columns of M are normalised to unit length before they are used.
import math

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """Attention whose scores are q . M k / sqrt(d_key)."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key))
        self.dropout = nn.Dropout(dropout)
        self.scale = 1.0 / math.sqrt(d_key)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        # keep the scores in a sane range, whatever M learns
        M = F.normalize(self.M, dim=0)
        scores = (queries @ M) @ keys.transpose(-1, -2) * self.scale
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
