# mistake: tanh_of_the_scores
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.rand(d_query, d_key) - 0.5)
        self.drop = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = self.M.shape[1]
        scores = torch.einsum("bqi,ij,bkj->bqk", queries, self.M, keys) / math.sqrt(d_key)
        scores = torch.tanh(scores)
        a = masked_softmax(scores, valid_lens)
        self.attention_weights = a
        return torch.einsum("bqk,bkv->bqv", self.drop(a), values)
