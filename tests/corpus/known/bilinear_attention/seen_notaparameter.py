# mistake: not_a_parameter
# seen: davidmrau/mixture-of-experts issue 12: an operation is applied to the Parameter before it is stored, so the attribute is a plain tensor that is not registered and not converted.
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.randn(d_query, d_key)) / math.sqrt(d_query)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = queries @ self.M @ keys.transpose(1, 2) / math.sqrt(keys.size(-1))
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
