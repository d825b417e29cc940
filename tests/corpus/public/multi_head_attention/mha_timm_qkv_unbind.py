"""ViT-style attention: one stacked projection, unbind(0) into q, k, v."""
import torch
import torch.nn as nn


class MultiHeadAttention(nn.Module):
    def __init__(
            self,
            d_in: int,
            d_out: int,
            context_length: int,
            dropout: float,
            num_heads: int,
            qkv_bias: bool = False,
            causal: bool = True,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError('dim should be divisible by num_heads')
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.scale = self.head_dim ** -0.5

        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.attn_drop = nn.Dropout(dropout)
        self.out_proj = nn.Linear(d_out, d_out)

        self.seq_limit = context_length
        mask = torch.ones(context_length, context_length, dtype=torch.bool).tril() if causal else None
        self.register_buffer('causal_mask', mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, N, _ = x.shape
        if N > self.seq_limit:
            raise ValueError(f'got {N} tokens, the limit is {self.seq_limit}')
        qkv = torch.stack((self.W_query(x), self.W_key(x), self.W_value(x)), dim=2)
        qkv = qkv.reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)

        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        if self.causal_mask is not None:
            attn = attn.masked_fill(self.causal_mask[:N, :N].logical_not(), float('-inf'))
        attn = attn.softmax(dim=-1)
        attn = self.attn_drop(attn)
        x = attn @ v

        x = x.transpose(1, 2).reshape(B, N, -1)
        x = self.out_proj(x)
        return x
