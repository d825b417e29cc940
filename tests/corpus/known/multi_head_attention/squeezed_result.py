# mistake: squeezed_output
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
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        shape = (x.shape[0], n, self.n_heads, self.size)
        q = q.reshape(shape).permute(0, 2, 1, 3)
        k = k.reshape(shape).permute(0, 2, 3, 1)
        v = v.reshape(shape).permute(0, 2, 1, 3)
        scores = torch.matmul(q, k) / self.size**0.5
        scores = scores.masked_fill(self.hidden[:n, :n], float("-inf"))
        w = self.dropout(torch.softmax(scores, dim=-1))
        y = torch.matmul(w, v).permute(0, 2, 1, 3).reshape(x.shape[0], n, -1)
        return self.out_proj(y).squeeze()
