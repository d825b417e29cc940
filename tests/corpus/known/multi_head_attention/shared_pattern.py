# mistake: weights_averaged_over_heads
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    """Multi-head self-attention with one fused projection."""

    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        if d_out // num_heads * num_heads != d_out:
            raise ValueError("d_out % num_heads != 0")
        self.n_head, self.head_size = num_heads, d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        tril = torch.tril(torch.ones(context_length, context_length))
        self.register_buffer("tril", tril.view(1, 1, context_length, context_length))

    def project(self, x):
        parts = (self.W_query, self.W_key, self.W_value)
        weight = torch.cat([p.weight for p in parts], dim=0)
        bias = torch.cat([p.bias for p in parts]) if self.W_query.bias is not None else None
        return F.linear(x, weight, bias)

    def forward(self, x):
        bs, length, _ = x.size()
        if length > self.context_length:
            raise ValueError("input longer than context_length")
        qkv = self.project(x).reshape(bs, length, 3, self.n_head, self.head_size)
        queries, keys, values = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = (queries @ keys.transpose(-2, -1)) * (self.head_size**-0.5)
        if self.causal:
            weights = weights.masked_fill(self.tril[:, :, :length, :length] == 0, float("-inf"))
        weights = weights.softmax(dim=-1)
        weights = weights.mean(1, keepdim=True).expand(bs, self.n_head, length, length)
        weights = self.dropout(weights)
        merged = (
            (weights @ values)
            .transpose(1, 2)
            .contiguous()
            .view(bs, length, self.n_head * self.head_size)
        )
        return self.out_proj(merged)
