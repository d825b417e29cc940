import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Several heads side by side."""

    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.h = num_heads
        self.d = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.max_tokens = context_length
        self.dropout = nn.Dropout(dropout)
        see = torch.ones(context_length, context_length)
        if causal:
            see = torch.tril(see)
        self.register_buffer("see", see)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.max_tokens:
            raise ValueError(f"{n} > {self.max_tokens}")
        q = self.W_query(x).reshape(b, n, self.h, self.d).permute(0, 2, 1, 3)
        k = self.W_key(x).reshape(b, n, self.h, self.d).permute(0, 2, 3, 1)
        v = self.W_value(x).reshape(b, n, self.h, self.d).permute(0, 2, 1, 3)
        scores = q @ k / self.d**0.5
        scores = scores.masked_fill(self.see[:n, :n] == 0, float("-inf"))
        out = self.dropout(torch.softmax(scores, dim=-1)) @ v
        out = out.permute(0, 2, 1, 3).reshape(b, n, self.h * self.d)
        return self.out_proj(out)
