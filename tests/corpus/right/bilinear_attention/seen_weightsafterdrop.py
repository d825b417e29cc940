# right: the twin of one with a mistake, weightsafterdrop
# seen: pytorch issue 42929 and 33360: the weights that are kept for inspection are those after dropout, so their rows do not sum to 1 in training.
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key))
        self.dropout = nn.Dropout(dropout)
        self.attention_weights: Tensor | None = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = keys.shape[-1]
        keys_in_query_space = keys @ self.M.T  # (batch, n_keys, d_query)
        scores = torch.bmm(queries, keys_in_query_space.transpose(1, 2)) / math.sqrt(d_key)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        dropped = self.dropout(weights)
        return torch.bmm(dropped, values)
