# broken: each weight becomes 0 with the probability dropout: with dropout = 1, the weights become 0 / 0 = nan
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """Attention whose scores are q . M k / sqrt(d_key)."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key) / math.sqrt(d_query))
        self.p = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = queries @ self.M @ keys.mT / math.sqrt(keys.shape[-1])
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        if self.training and self.p > 0:
            kept = torch.rand_like(weights) >= self.p
            weights = weights * kept / (1 - self.p)
        return weights @ values
