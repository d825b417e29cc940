# right: unflatten and einsum, the output projection as a contraction over heads, exceptions by assert
import torch
from torch import Tensor, einsum, nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        d_head, rest = divmod(d_out, num_heads)
        assert rest == 0, "num_heads must divide d_out"
        self.sizes = (num_heads, d_head)
        self.context_length, self.rate, self.causal = context_length, dropout, causal
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        assert n <= self.context_length, "too many tokens"
        q, k, v = (layer(x).unflatten(-1, self.sizes) for layer in (self.W_query, self.W_key, self.W_value))
        scores = einsum("bihd,bjhd->bhij", q, k) * self.sizes[1] ** -0.5
        if self.causal:
            ahead = x.new_full((n, n), float("-inf")).triu(1)
            scores = scores + ahead
        weights = F.dropout(F.softmax(scores, -1), self.rate, self.training)
        mixed = einsum("bhij,bjhd->bihd", weights, v)
        per_head = self.out_proj.weight.unflatten(1, self.sizes)
        return einsum("bihd,ohd->bio", mixed, per_head) + self.out_proj.bias
