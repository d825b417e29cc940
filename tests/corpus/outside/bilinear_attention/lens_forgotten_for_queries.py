# mistake: lengths per query, (batch, n_queries), are reduced to one length per batch item, that of its first query
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.eye(d_query, d_key))
        self.dropout = nn.Dropout(dropout)
        self.root = math.sqrt(d_key)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = (queries @ self.M) @ keys.transpose(1, 2) / self.root
        if valid_lens is not None and valid_lens.ndim == 2:
            valid_lens = valid_lens[:, 0]
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        return self.dropout(weights) @ values
