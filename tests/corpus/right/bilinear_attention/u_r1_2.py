# right: one einsum of three operands, scale from the shape of M, F.dropout
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.empty(d_query, d_key).uniform_(-0.5, 0.5))
        self.rate = dropout
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = torch.einsum("bqd,de,bke->bqk", queries, self.M, keys)
        weights = masked_softmax(scores / math.sqrt(self.M.size(1)), valid_lens)
        self.attention_weights = weights
        return torch.einsum("bqk,bkv->bqv", F.dropout(weights, self.rate, self.training), values)
