# mistake: merged_without_transpose
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
        self.nh, self.hd = num_heads, d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_drop = nn.Dropout(dropout)
        self.is_causal = causal
        tril = torch.tril(torch.ones(context_length, context_length))
        self.register_buffer("tril", tril.view(1, 1, context_length, context_length))

    def project(self, x):
        parts = (self.W_query, self.W_key, self.W_value)
        weight = torch.cat([p.weight for p in parts], dim=0)
        bias = torch.cat([p.bias for p in parts]) if self.W_query.bias is not None else None
        return F.linear(x, weight, bias)

    def forward(self, x):
        B, N, _ = x.size()
        if N > self.context_length:
            raise ValueError("input longer than context_length")
        qkv = self.project(x).reshape(B, N, 3, self.nh, self.hd)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q @ k.transpose(-2, -1)) * (self.hd**-0.5)
        if self.is_causal:
            attn = attn.masked_fill(self.tril[:, :, :N, :N] == 0, float("-inf"))
        attn = attn.softmax(dim=-1)
        attn = self.attn_drop(attn)
        y = (attn @ v).contiguous().view(B, N, self.nh * self.hd)
        return self.out_proj(y)
