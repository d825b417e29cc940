"""Additive attention, its layers in one line and its scores in another."""

from masked_softmax import masked_softmax
from torch import nn


class AdditiveAttention(nn.Dropout):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__(dropout)
        sizes = (d_query, num_hiddens), (d_key, num_hiddens), (num_hiddens, 1)
        self.W_q, self.W_k, self.w_v = (nn.Linear(*size, bias=False) for size in sizes)

    def forward(self, queries, keys, values, valid_lens=None):
        s = (self.W_q(queries)[:, :, None] + self.W_k(keys)[:, None]).tanh() @ self.w_v.weight[0]
        w = self.attention_weights = masked_softmax(s, valid_lens)
        return super().forward(w) @ values
