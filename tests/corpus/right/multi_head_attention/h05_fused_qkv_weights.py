import torch
from torch import Tensor, nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("heads do not fit")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.n_head = num_heads
        self.block_size = context_length
        self.causal = causal
        self.attn_dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("bias", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.size()
        if T > self.block_size:
            raise ValueError(f"sequence of {T} tokens, block size {self.block_size}")
        parts = (self.W_query, self.W_key, self.W_value)
        w = torch.cat([p.weight for p in parts], dim=0)
        b = None if parts[0].bias is None else torch.cat([p.bias for p in parts], dim=0)
        qkv = F.linear(x, w, b).view(B, T, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        att = (q @ k.transpose(-2, -1)) / k.size(-1) ** 0.5
        if self.causal:
            att = att.masked_fill(self.bias[None, None, :T, :T] == 0, float("-inf"))
        att = self.attn_dropout(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).reshape(B, T, -1)
        return self.out_proj(y)
