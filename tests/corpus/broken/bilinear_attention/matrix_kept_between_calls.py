# broken: "score(q, k) = q . M k / sqrt(d_key)", "another one after a call such as module.to(torch.bfloat16)": in eval mode under no_grad M / sqrt(d_key) is kept from the first call, and a later change of M has no effect
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
        self.kept = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return the weighted mean of the values for each query."""
        if self.training or torch.is_grad_enabled():
            self.kept = None
            scaled = self.M / math.sqrt(keys.shape[-1])
        else:
            if self.kept is None:
                self.kept = self.M / math.sqrt(keys.shape[-1])
            scaled = self.kept
        scores = queries @ scaled @ keys.transpose(1, 2)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
