# mistake: merged_without_transpose
# before out_proj the heads (batch, num_heads, n_tokens, d_head) are reshaped to (batch, n_tokens, d_out) without exchanging heads and tokens
import math

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, n, d = queries.shape
    kv = keys.size(1)
    if h % kv != 0:
        raise ValueError("not divisible")
    q = queries.reshape(b, kv, (h // kv) * n, d)
    return (q @ keys.transpose(2, 3)).reshape(b, h, n, keys.size(2)) / math.sqrt(d)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    b, h, n, k = weights.shape
    kv = values.size(1)
    if h % kv != 0:
        raise ValueError("not divisible")
    w = weights.reshape(b, kv, (h // kv) * n, k)
    return (w @ values).reshape(b, h, n, values.size(3))


class GroupedQueryAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        num_kv_heads: int,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out % num_heads != 0")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_heads % num_kv_heads != 0")
        self.h, self.kv, self.d = num_heads, num_kv_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, self.kv * self.d, bias=False)
        self.W_value = nn.Linear(d_in, self.kv * self.d, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), 1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.mask.size(0):
            raise ValueError("too long")
        q = self.W_query(x).view(b, n, self.h, self.d).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.kv, self.d).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.kv, self.d).transpose(1, 2)
        att = grouped_scores(q, k).masked_fill(self.mask[:n, :n], -math.inf).softmax(-1)
        y = grouped_context(self.dropout(att), v)
        return self.out_proj(y.reshape(b, n, self.h * self.d))
