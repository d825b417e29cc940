# mistake: all_ones_squeezed
# squeeze() without an axis removes every axis of size 1, so a batch, a query or a key alone makes it fail
import torch
from masked_softmax import masked_softmax
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        q, k = self.W_q(queries), self.W_k(keys)
        act = torch.tanh(q[:, :, None, :] + k[:, None, :, :])
        scores = self.w_v(act).squeeze()
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.drop(self.attention_weights), values)
