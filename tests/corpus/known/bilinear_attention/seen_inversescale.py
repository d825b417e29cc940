# mistake: scaled_up
# seen: esceptico/perceiver-io issue 9: the scale is already 1 / sqrt(d_key), and the scores are divided by it, which multiplies them by the root.
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.scale = d_key**-0.5
        self.dropout_rate = dropout
        self.M = nn.Parameter(torch.zeros(d_query, d_key))
        nn.init.normal_(self.M, std=self.scale)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = torch.einsum("bnq,qk,bmk->bnm", queries, self.M, keys) / self.scale
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        weights = nn.functional.dropout(weights, self.dropout_rate, self.training)
        return torch.einsum("bnm,bmv->bnv", weights, values)
