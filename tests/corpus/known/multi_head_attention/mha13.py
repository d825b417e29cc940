# mistake: mask_over_heads
# the (query, key) mask lands on the (head, key) axes
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        if causal:
            self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length, dtype=torch.bool)))

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head)
        k = self.W_key(x).view(b, n, self.num_heads, self.d_head)
        v = self.W_value(x).view(b, n, self.num_heads, self.d_head)
        scores = torch.einsum("bqhd,bkhd->bqhk", q, k) / self.d_head**0.5
        if self.causal:
            scores = torch.where(self.mask[None, None, :n, :n], scores, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(torch.einsum("bqhk,bkhd->bqhd", weights, v).reshape(b, n, -1))
