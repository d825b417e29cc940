import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.ones(context_length, context_length)
        if causal:
            mask = mask.tril()
        self.register_buffer("mask", mask == 1)

    def forward(self, x):
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError("n_tokens is larger than context_length")
        queries = torch.stack(self.W_query(x).chunk(self.num_heads, dim=-1), dim=1)
        keys = torch.stack(self.W_key(x).chunk(self.num_heads, dim=-1), dim=1)
        values = torch.stack(self.W_value(x).chunk(self.num_heads, dim=-1), dim=1)
        scores = queries @ keys.transpose(-1, -2) / keys.size(-1) ** 0.5
        scores = scores.masked_fill(~self.mask[:n_tokens, :n_tokens], -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        heads = weights @ values
        return self.out_proj(torch.cat(heads.unbind(dim=1), dim=-1))
