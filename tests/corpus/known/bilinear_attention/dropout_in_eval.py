# mistake: always_drops
# F.dropout is called without the module's mode, so weights are dropped in eval mode, too
import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query, d_key, dropout):
        super().__init__()
        self.M = nn.Parameter(torch.rand(d_query, d_key))
        self.dropout = dropout
        self.scaling = d_key**-0.5

    def forward(self, queries, keys, values, valid_lens=None):
        scores = torch.einsum("bqi,ij,bkj->bqk", queries, self.M, keys) * self.scaling
        self.attention_weights = masked_softmax(scores, valid_lens)
        attn = F.dropout(self.attention_weights, p=self.dropout)
        return torch.einsum("bqk,bkd->bqd", attn, values)
