"""Scaled dot-product attention around one baddbmm."""

from masked_softmax import masked_softmax
from torch import nn


def batched_product(a, b):
    n, m = a.shape, b.shape
    if len(n) != 3 or len(m) != 3 or n[0] != m[0] or n[2] != m[1]:
        raise ValueError(f"{n} x {m}")
    return a.matmul(b)


class DotProductAttention(nn.Dropout):
    def __init__(self, dropout):
        super().__init__(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        s = queries.new_zeros(()).baddbmm(queries, keys.mT, beta=0, alpha=queries.shape[-1] ** -0.5)
        w = self.attention_weights = masked_softmax(s, valid_lens)
        return super().forward(w) @ values.where(w.any(1)[..., None], 0)
