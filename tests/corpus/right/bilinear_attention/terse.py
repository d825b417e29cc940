"""Bilinear attention around one baddbmm."""

from masked_softmax import masked_softmax
from torch import nn, rand


class BilinearAttention(nn.Dropout):
    def __init__(self, d_query, d_key, dropout):
        super().__init__(dropout)
        self.M = nn.Parameter(rand(d_query, d_key) - 0.5)

    def forward(self, queries, keys, values, valid_lens=None):
        s = queries.new_zeros(()).baddbmm(
            queries @ self.M, keys.mT, beta=0, alpha=keys.shape[-1] ** -0.5
        )
        w = self.attention_weights = masked_softmax(s, valid_lens)
        return super().forward(w) @ values
