import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, num_heads, context_length, dropout, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{d_out} is not divisible by {num_heads}")
        self.num_heads = num_heads
        self.context_length = context_length
        self.inv_sqrt_d = 1 / (d_out // num_heads) ** 0.5
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        everything = torch.ones(context_length, context_length).bool()
        self.register_buffer("past", torch.tril(everything) if causal else everything)

    def to_heads(self, t):
        return torch.swapaxes(t.unflatten(2, (self.num_heads, -1)), 1, 2)

    def forward(self, x):
        length = x.shape[1]
        if length > self.context_length:
            raise ValueError(f"context is {self.context_length} but there are {length} tokens")
        query = self.to_heads(self.W_query(x))
        key = self.to_heads(self.W_key(x))
        value = self.to_heads(self.W_value(x))
        sim = query @ torch.swapaxes(key, 2, 3) * self.inv_sqrt_d
        sim = torch.where(self.past[:length, :length], sim, float("-inf"))
        p = self.drop(torch.softmax(sim, -1))
        return self.out_proj(torch.swapaxes(p @ value, 1, 2).flatten(2))
