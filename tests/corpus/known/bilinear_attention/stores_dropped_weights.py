# mistake: keeps_dropped_weights
# attention_weights holds the weights after dropout
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.empty(d_query, d_key))
        nn.init.xavier_uniform_(self.M)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None) -> Tensor:
        q = queries @ self.M
        scores = q @ keys.mT / math.sqrt(keys.shape[-1])
        weights = masked_softmax(scores, valid_lens)
        weights = self.dropout(weights)
        self.attention_weights = weights
        return weights @ values
