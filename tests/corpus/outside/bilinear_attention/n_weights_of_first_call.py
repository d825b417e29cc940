# mistake: attention_weights is only set if it is None, so a second call leaves the old weights there
import math

import torch
from masked_softmax import masked_softmax
from torch import nn


class BilinearAttention(nn.Module):
    attention_weights = None

    def __init__(self, d_query, d_key, dropout):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key))
        self.dropout = nn.Dropout(dropout)
        self.scale = 1 / math.sqrt(d_key)

    def forward(self, queries, keys, values, valid_lens=None):
        weights = masked_softmax(queries @ self.M @ keys.mT * self.scale, valid_lens)
        if self.attention_weights is None:
            self.attention_weights = weights.detach()
        return self.dropout(weights) @ values
