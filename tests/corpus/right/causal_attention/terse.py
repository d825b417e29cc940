"""Causal attention around one baddbmm with an additive mask."""

from torch import full, inf, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")
        self._drop = nn.Dropout(dropout)
        self.register_buffer("_bias", full((context_length, context_length), -inf).triu(1))

    def forward(self, x):
        if (n := x.shape[1]) > len(self._bias):
            raise ValueError(f"{n} tokens > context_length {len(self._bias)}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return self._drop(
            self._bias[:n, :n].baddbmm(q, k.mT, alpha=q.shape[-1] ** -0.5).softmax(-1)
        ).bmm(v)
