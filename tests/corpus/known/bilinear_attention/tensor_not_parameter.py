# mistake: not_a_parameter
# M is a plain tensor with requires_grad and no Parameter, so it is not among the module's parameters and does not follow .to()
import math

import torch
from masked_softmax import masked_softmax
from torch import nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query, d_key, dropout):
        super().__init__()
        self.M = torch.randn(d_query, d_key, requires_grad=True)
        self.d_key = d_key
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        projected = torch.matmul(queries, self.M)
        scores = torch.matmul(projected, keys.permute(0, 2, 1)) / math.sqrt(self.d_key)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.matmul(self.dropout(self.attention_weights), values)
