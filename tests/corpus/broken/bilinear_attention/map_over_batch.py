# broken: No Python loop runs over batch, queries or keys: map goes through the batch items one by one
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
        def score(q: Tensor, k: Tensor) -> Tensor:
            return q @ self.M @ k.mT / math.sqrt(k.shape[-1])

        scores = torch.stack(list(map(score, queries, keys)))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        weights = F.dropout(weights, self.p, self.training)
        return weights @ values
