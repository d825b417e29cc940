# broken: After a call, attention_weights holds its weights: a call in training mode leaves those of an earlier call (or None) there
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


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
        if not self.training:
            self.attention_weights = weights.detach()
        weights = F.dropout(weights, self.p, self.training)
        return weights @ values
