# promise: mask made on a global DEVICE instead of where x is
import math

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def grouped_scores(queries, keys):
    B, H, Q, D = queries.shape
    G, K = keys.shape[1], keys.shape[2]
    if H % G != 0:
        raise ValueError("number of query heads must be a multiple of number of kv heads")
    q = queries.reshape(B * G, (H // G) * Q, D)
    k = keys.reshape(B * G, K, D)
    return torch.bmm(q, k.transpose(1, 2)).reshape(B, H, Q, K) / math.sqrt(D)


def grouped_context(weights, values):
    B, H, Q, K = weights.shape
    G, D = values.shape[1], values.shape[3]
    if H % G != 0:
        raise ValueError("number of query heads must be a multiple of number of kv heads")
    w = weights.reshape(B * G, (H // G) * Q, K)
    return torch.bmm(w, values.reshape(B * G, K, D)).reshape(B, H, Q, D)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_heads must be divisible by num_kv_heads")
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.context_length:
            raise ValueError(f"Sequence of {T} tokens exceeds context length {self.context_length}")
        q = self.W_query(x).view(B, T, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(B, T, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).view(B, T, self.num_kv_heads, self.d_head).transpose(1, 2)
        scores = grouped_scores(q, k)
        mask = torch.tril(torch.ones(T, T, device=DEVICE))
        scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = grouped_context(weights, v)
        return self.out_proj(out.transpose(1, 2).reshape(B, T, -1))
