# mistake: mask_in_training_only
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float,
        num_heads: int, qkv_bias: bool = False, causal: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_out}")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.h = num_heads
        self.T_max = context_length
        self.p = dropout
        self.causal = causal

    def split(self, t: Tensor) -> Tensor:
        return t.reshape(t.size(0), t.size(1), self.h, t.size(2) // self.h).permute(0, 2, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        if T > self.T_max:
            raise ValueError("T > context_length")
        q = self.split(self.W_query(x))
        k = self.split(self.W_key(x))
        v = self.split(self.W_value(x))
        att = q.matmul(k.mT) / math.sqrt(q.size(-1))
        if self.causal and self.training:
            att = att + torch.full((T, T), -math.inf, dtype=att.dtype, device=att.device).triu(1)
        att = F.dropout(att.softmax(-1), self.p, self.training)
        y = att.matmul(v).permute(0, 2, 1, 3).flatten(2)
        return self.out_proj(y)
