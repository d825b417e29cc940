"""Multi-head attention: one baddbmm over batch * heads, beta switching the causal bias off."""

from torch import full, inf, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{d_out} % {num_heads} != 0")
        self._h, self._causal = num_heads, causal
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in "qkv")
        self.out_proj = nn.Linear(d_out, d_out)
        self._drop = nn.Dropout(dropout)
        self.register_buffer("_future", full((context_length, context_length), -inf).triu(1))

    def forward(self, x):
        b, n, _ = x.shape
        if n > len(self._future):
            raise ValueError(f"{n} tokens > context_length {len(self._future)}")
        cut = lambda y: y.view(b, n, self._h, y.shape[-1] // self._h).transpose(1, 2).flatten(0, 1)
        q, k, v = cut(self.W_query(x)), cut(self.W_key(x)), cut(self.W_value(x))
        w = (
            self._future[:n, :n]
            .baddbmm(q, k.mT, beta=int(self._causal), alpha=q.shape[-1] ** -0.5)
            .softmax(-1)
        )
        return self.out_proj(
            self._drop(w).bmm(v).unflatten(0, (b, self._h)).transpose(1, 2).flatten(2)
        )
