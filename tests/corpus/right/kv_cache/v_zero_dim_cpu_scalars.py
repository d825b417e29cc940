# style: 0-dim CPU tensors as scalars (scale, -inf, number of cached tokens)
import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None):
        b, n, _ = x.shape
        q = self.W_query(x).reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
        offset = torch.tensor(0)
        if cache is not None:
            offset = torch.tensor(cache[0].shape[2])
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        if offset + n > self.context_length:
            raise ValueError("the sequence is too long")

        scale = torch.sqrt(torch.tensor(float(self.d_head)))
        nothing = torch.tensor(float("-inf"))
        scores = torch.matmul(q, k.transpose(-1, -2)) / scale
        rows = torch.arange(n, device=scores.device).unsqueeze(1) + offset
        columns = torch.arange(k.shape[2], device=scores.device)
        scores = scores.masked_fill(columns > rows, nothing)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = torch.matmul(weights, v).transpose(1, 2).reshape(b, n, -1)
        return self.out_proj(context), (k, v)
