# right: einsum of three tensors, M starts at zeros, the weights are a read-only property
import torch
from masked_softmax import masked_softmax
from torch import nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.zeros(d_query, d_key))
        self._p = dropout
        self._weights = None

    @property
    def attention_weights(self):
        return self._weights

    def forward(self, queries, keys, values, valid_lens=None):
        scores = torch.einsum("bqi,ij,bkj->bqk", queries, self.M, keys) * self.M.size(1) ** -0.5
        weights = masked_softmax(scores, valid_lens)
        self._weights = weights.detach()
        weights = nn.functional.dropout(weights, self._p, self.training)
        return torch.einsum("bqk,bkv->bqv", weights, values)
