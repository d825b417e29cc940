# mistake: loop_over_heads
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be a multiple of num_heads")
        self.n_heads = num_heads
        self.size = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        hidden = torch.ones(context_length, context_length).triu(1).bool()
        self.register_buffer("hidden", hidden if causal else torch.zeros_like(hidden))

    def forward(self, x):
        n = x.shape[1]
        if n > self.hidden.shape[0]:
            raise ValueError("too long")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        results = []
        for i in range(self.n_heads):
            cols = slice(i * self.size, (i + 1) * self.size)
            scores = queries[..., cols] @ keys[..., cols].transpose(1, 2) / self.size**0.5
            scores = scores.masked_fill(self.hidden[:n, :n], float("-inf"))
            weights = self.dropout(torch.softmax(scores, dim=-1))
            results.append(weights @ values[..., cols])
        return self.out_proj(torch.cat(results, dim=-1))
