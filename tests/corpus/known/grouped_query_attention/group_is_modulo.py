# mistake: tiled_groups

import torch
from torch import Tensor, nn


def _group(num_heads: int, num_kv_heads: int) -> int:
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} does not divide {num_heads}")
    return num_heads // num_kv_heads


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, n, d = queries.shape
    kv = keys.shape[1]
    g = _group(h, kv)
    q = queries.reshape(b, g, kv, n, d).transpose(1, 2).reshape(b, kv, g * n, d)
    s = q @ keys.transpose(-2, -1) / d**0.5
    return s.reshape(b, kv, g, n, -1).transpose(1, 2).reshape(b, h, n, -1)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    b, h, n, m = weights.shape
    kv = values.shape[1]
    g = _group(h, kv)
    w = weights.reshape(b, g, kv, n, m).transpose(1, 2).reshape(b, kv, g * n, m)
    c = w @ values
    return c.reshape(b, kv, g, n, -1).transpose(1, 2).reshape(b, h, n, -1)


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
            raise ValueError("num_heads must divide d_out")
        _group(num_heads, num_kv_heads)
        self.d_head = d_out // num_heads
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        mask = torch.triu(torch.ones(n, n, dtype=torch.bool, device=x.device), diagonal=1)
        scores = grouped_scores(q, k).masked_fill(mask, -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = grouped_context(weights, v).transpose(1, 2).reshape(b, n, -1)
        return self.out_proj(out)
