import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.factor = (d_out // num_heads) ** -0.5
        hidden = torch.triu(torch.ones(context_length, context_length), 1) > 0
        if not causal:
            hidden[:] = False
        self.register_buffer("hidden", hidden)

    def forward(self, x):
        b, t, _ = x.shape
        if t > self.hidden.shape[1]:
            raise ValueError("t > context_length")
        q, k, v = [
            w(x).view(b, t, self.num_heads, -1).transpose(1, 2)
            for w in (self.W_query, self.W_key, self.W_value)
        ]
        att = q @ k.transpose(2, 3) * self.factor
        att.masked_fill_(self.hidden[:t, :t], float("-inf"))
        att = self.drop(att.softmax(-1))
        y = (att @ v).transpose(1, 2).contiguous().view(b, t, -1)
        return self.out_proj(y)
