# mistake: dropout_never_used + float32_mask
import torch
from torch import nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("heads")
        self.num_heads = num_heads
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1) > 0)

    def heads(self, merged):
        return merged.view(merged.shape[0], merged.shape[1], self.num_heads, -1).swapaxes(1, 2)

    def forward(self, x):
        n = x.shape[1]
        if n > self.mask.shape[1]:
            raise ValueError("context")
        queries, keys, values = (
            self.heads(self.W_query(x)),
            self.heads(self.W_key(x)),
            self.heads(self.W_value(x)),
        )
        logits = torch.einsum("bhid,bhjd->bhij", queries, keys) / queries.shape[-1] ** 0.5
        if self.causal:
            minus_inf = torch.where(self.mask[:n, :n], -torch.inf, torch.tensor(0.0))
            logits = logits + minus_inf
        merged = F.softmax(logits, dim=-1) @ values
        return self.out_proj(merged.swapaxes(1, 2).flatten(-2))
