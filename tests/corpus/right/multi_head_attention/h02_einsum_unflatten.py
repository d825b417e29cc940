import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        d_head, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"{d_out} columns cannot be shared by {num_heads} heads")
        self.heads = (num_heads, d_head)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        t = torch.arange(context_length)
        allowed = t[:, None] >= t[None] if causal else torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("allowed", allowed)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.allowed.shape[0]:
            raise ValueError(f"{n} tokens")
        q = self.W_query(x).unflatten(-1, self.heads)
        k = self.W_key(x).unflatten(-1, self.heads)
        v = self.W_value(x).unflatten(-1, self.heads)
        scores = torch.einsum("bqhc,bkhc->bhqk", q, k) / self.heads[1] ** 0.5
        weights = scores.masked_fill(~self.allowed[:n, :n], -torch.inf).softmax(-1)
        return self.out_proj(torch.einsum("bhqk,bkhc->bqhc", self.drop(weights), v).flatten(-2))
