# mistake: scaled_by_query_size
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """Attention whose scores are q . M k / sqrt(d_key)."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.rand(d_query, d_key))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d = queries.shape[-1]
        # i: d_query, j: d_key
        s = torch.einsum("bqi,ij,bkj->bqk", queries, self.M, keys) / math.sqrt(d)
        w = masked_softmax(s, valid_lens)
        self.attention_weights = w.detach()
        return torch.einsum("bqk,bkv->bqv", self.dropout(w), values)
