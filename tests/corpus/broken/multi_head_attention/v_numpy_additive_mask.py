# promise: additive mask built with numpy, converted to the dtype but never to the device
import numpy as np
import torch
import torch.nn as nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, n_tokens, _ = x.size()
        if n_tokens > self.context_length:
            raise ValueError("x has more tokens than context_length")

        def heads(layer):
            return layer(x).reshape(batch, n_tokens, self.num_heads, self.head_dim).permute(0, 2, 1, 3)

        queries, keys, values = heads(self.W_query), heads(self.W_key), heads(self.W_value)
        scores = queries @ keys.permute(0, 1, 3, 2) / np.sqrt(self.head_dim).item()
        if self.causal:
            bias = np.triu(np.full((n_tokens, n_tokens), -np.inf, dtype=np.float32), k=1)
            scores = scores + torch.from_numpy(bias).to(scores.dtype)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = (weights @ values).permute(0, 2, 1, 3).reshape(batch, n_tokens, -1)
        return self.out_proj(context)
