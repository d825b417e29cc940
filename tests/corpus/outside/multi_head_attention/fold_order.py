# mistake: queries and keys are folded as (batch, heads), values as (heads, batch)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads does not divide d_out")
        self.h = num_heads
        self.d = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).view(b, n, self.h, self.d).transpose(1, 2).reshape(b * self.h, n, self.d)
        k = self.W_key(x).view(b, n, self.h, self.d).transpose(1, 2).reshape(b * self.h, n, self.d)
        v = torch.cat(self.W_value(x).split(self.d, dim=-1), dim=0)  # heads below each other
        scores = torch.bmm(q, k.transpose(1, 2)) / self.d**0.5
        if self.causal:
            mask = torch.ones(n, n, device=x.device).triu(1).bool()
            scores = scores.masked_fill(mask, -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = torch.bmm(weights, v).view(b, self.h, n, self.d)
        return self.out_proj(out.transpose(1, 2).flatten(2))
