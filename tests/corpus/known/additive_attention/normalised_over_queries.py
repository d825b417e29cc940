# mistake: softmax_over_queries
import torch
from masked_softmax import masked_softmax
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, False)
        self.W_k = nn.Linear(d_key, num_hiddens, False)
        self.w_v = nn.Linear(num_hiddens, 1, False)
        self.drop = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        pairs = self.W_q(queries).unsqueeze(-2) + self.W_k(keys).unsqueeze(-3)
        scores = self.w_v(pairs.tanh()).flatten(start_dim=2)  # (batch, n_queries, n_keys)
        visible = masked_softmax(torch.zeros_like(scores), valid_lens) > 0
        e = scores.exp()
        self.attention_weights = e / e.sum(dim=1, keepdim=True) * visible
        return torch.einsum("bqk,bkv->bqv", self.drop(self.attention_weights), values)
