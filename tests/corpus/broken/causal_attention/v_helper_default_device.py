# promise: mask helper has device="cpu" as default and forward never passes x.device
import torch
from torch import nn


def causal_mask(n, device="cpu"):
    """True where a query may not look."""
    return torch.triu(torch.ones(n, n, dtype=torch.bool, device=device), diagonal=1)


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"{n} tokens, but the context has only {self.context_length}")
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)
        scores = queries @ keys.transpose(1, 2) / self.d_out ** 0.5
        scores = scores.masked_fill(causal_mask(n), float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return weights @ values
