# right: batch and heads are folded into one axis for baddbmm and bmm, with a mask buffer that is empty without causal.
import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ) -> None:
        super().__init__()
        if d_out != d_out // num_heads * num_heads:
            raise ValueError("d_out is not a multiple of num_heads")
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.attn_drop = nn.Dropout(dropout)
        self.h, self.d, self.context_length = num_heads, d_out // num_heads, context_length
        mask = torch.zeros(context_length, context_length, dtype=torch.bool)
        self.register_buffer("hidden", ~mask.logical_not().tril() if causal else mask)

    def _fold(self, t: Tensor) -> Tensor:
        b, n, _ = t.shape
        return t.reshape(b, n, self.h, self.d).permute(0, 2, 1, 3).reshape(b * self.h, n, self.d)

    def _unfold(self, t: Tensor, b: int) -> Tensor:
        n = t.shape[1]
        return t.reshape(b, self.h, n, self.d).permute(0, 2, 1, 3).reshape(b, n, self.h * self.d)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("x is longer than context_length")
        q, k, v = (self._fold(f(x)) for f in (self.W_query, self.W_key, self.W_value))
        start = torch.zeros(b * self.h, n, n, dtype=q.dtype, device=q.device)
        s = torch.baddbmm(start, q, k.mT, beta=0, alpha=1 / math.sqrt(self.d))
        s = s.masked_fill(self.hidden[:n, :n], float("-inf"))
        return self.out_proj(self._unfold(torch.bmm(self.attn_drop(s.softmax(2)), v), b))
