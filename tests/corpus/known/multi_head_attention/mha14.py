# mistake: dropout_in_eval
# a Dropout module made in forward, which is always in training mode
import torch
from torch import Tensor, nn


class _Head(nn.Module):
    """Scaled products, softmax and dropout for all heads at once."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, q, k, v, hide=None):
        s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if hide is not None:
            s = s.masked_fill(hide, float("-inf"))
        drop = nn.Dropout(self.rate)
        return drop(s.softmax(-1)) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads has to divide d_out")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.core = _Head(dropout)
        self.num_heads, self.context_length, self.causal = num_heads, context_length, causal
        if causal:
            self.register_buffer("hide", torch.ones(context_length, context_length).triu(1) == 1)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("context too short")
        q, k, v = (w(x).view(b, n, self.num_heads, -1).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value))
        hide = self.hide[:n, :n] if self.causal else None
        return self.out_proj(self.core(q, k, v, hide).transpose(1, 2).reshape(b, n, -1))
