# mistake: out_proj_never_used
# out_proj exists but the joined heads are returned as they are
import torch
import torch.nn as nn
from torch import Tensor


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out not divisible by num_heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.num_heads = num_heads
        self.limit = context_length
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        if causal:
            self.register_buffer("look_ahead", torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), 1))

    def forward(self, x: Tensor) -> Tensor:
        batch, n_tokens = x.shape[:2]
        if n_tokens > self.limit:
            raise ValueError("too long")
        shape = (batch, n_tokens, self.num_heads, self.W_query.out_features // self.num_heads)
        q = self.W_query(x).view(shape).transpose(1, 2)
        k = self.W_key(x).view(shape).permute(0, 2, 3, 1)
        v = self.W_value(x).view(shape).transpose(1, 2)
        weights = torch.matmul(q, k).div(shape[-1] ** 0.5)
        if self.causal:
            weights = weights.masked_fill(self.look_ahead[:n_tokens, :n_tokens], -torch.inf)
        weights = self.dropout(weights.softmax(dim=-1))
        out = torch.matmul(weights, v).transpose(1, 2)
        return out.reshape(batch, n_tokens, -1)
