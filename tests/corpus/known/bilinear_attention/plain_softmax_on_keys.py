# mistake: lengths_ignored
import torch
from torch import nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query, d_key, dropout):
        super().__init__()
        self.M = nn.Parameter(torch.rand(d_query, d_key))
        self.drop = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        moved = keys @ self.M.transpose(0, 1)  # M k of each key: (batch, n_keys, d_query)
        scores = torch.einsum("bqi,bki->bqk", queries, moved) * keys.size(-1) ** -0.5
        scores = scores - scores.amax(dim=-1, keepdim=True).detach()
        self.attention_weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
        return torch.einsum("bqk,bkv->bqv", self.drop(self.attention_weights), values)
