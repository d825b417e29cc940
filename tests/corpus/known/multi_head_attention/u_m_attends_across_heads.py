# mistake: heads_attend_to_heads
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.causal = num_heads, causal
        self.context_length = context_length

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError("too many tokens")
        b, n, _ = x.shape
        q, k, v = (f(x).unflatten(2, (self.num_heads, -1)) for f in (self.W_query, self.W_key, self.W_value))
        s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if self.causal:
            h = self.num_heads
            s = s.masked_fill(torch.ones(h, h, device=x.device).triu(1).bool(), -torch.inf)
        return self.out_proj((self.dropout(s.softmax(-1)) @ v).flatten(2))
