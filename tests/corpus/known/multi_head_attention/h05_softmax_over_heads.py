# mistake: softmax_over_heads
# normalises over the head axis (dim 1)
# true: the weights of one query-key pair sum to 1 over the heads; a single head gives weight 1 for every visible key
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError
        self.heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("mask", torch.ones(context_length, context_length).tril().bool())
        else:
            self.mask = None

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError("too many tokens")
        split = lambda t: t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        scores = q @ k.mT / q.size(-1) ** 0.5
        weights = torch.softmax(scores, dim=1)
        if self.mask is not None:
            weights = weights * self.mask[:n, :n]
        out = self.dropout(weights) @ v
        return self.out_proj(out.transpose(1, 2).flatten(-2))
