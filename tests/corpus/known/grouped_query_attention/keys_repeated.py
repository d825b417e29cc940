# mistake: copied_to_all_heads
# keys and values are copied to all heads with repeat_interleave
import math

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    if queries.shape[1] % keys.shape[1] != 0:
        raise ValueError("num_kv_heads must divide num_heads")
    keys = keys.repeat_interleave(queries.shape[1] // keys.shape[1], dim=1)
    return queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    if weights.shape[1] % values.shape[1] != 0:
        raise ValueError("num_kv_heads must divide num_heads")
    values = values.repeat_interleave(weights.shape[1] // values.shape[1], dim=1)
    return weights @ values


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("bad number of heads")
        self.context_length = context_length
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.d_head = d_out // num_heads
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
        mask = torch.triu(torch.ones(n, n, device=x.device), diagonal=1).bool()
        weights = grouped_scores(q, k).masked_fill(mask, -torch.inf).softmax(dim=-1)
        context = grouped_context(self.dropout(weights), v)
        return self.out_proj(context.transpose(1, 2).reshape(b, n, -1))
