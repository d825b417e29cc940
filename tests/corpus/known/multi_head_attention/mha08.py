# mistake: out_proj_before_merging
# out_proj is applied to the values, before attention and joining
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be a multiple of num_heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.H = num_heads
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        allow = torch.ones(context_length, context_length) if not causal else torch.ones(context_length, context_length).tril()
        self.register_buffer("allow", allow)

    def forward(self, x: Tensor) -> Tensor:
        B, N, _ = x.shape
        if N > self.context_length:
            raise ValueError(f"N={N} too large")
        # the output projection is linear, so it can be done first
        v = self.out_proj(self.W_value(x))
        q, k, v = (t.reshape(B, N, self.H, -1).swapaxes(1, 2) for t in (self.W_query(x), self.W_key(x), v))
        s = q @ k.mT / k.shape[-1] ** 0.5
        s = s.masked_fill(self.allow[:N, :N] < 0.5, float("-inf"))
        return (self.dropout(torch.softmax(s, -1)) @ v).swapaxes(1, 2).reshape(B, N, -1)
