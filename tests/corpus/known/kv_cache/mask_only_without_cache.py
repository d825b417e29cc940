# mistake: unmasked_in_chunk
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CachedAttention(nn.Module):
    """Attention that remembers keys and values."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.context_length = context_length
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.rate = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1).bool()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor, cache: tuple[Tensor, Tensor] | None = None):
        q = self.W_query(x).unflatten(2, (self.num_heads, self.d_head)).transpose(1, 2)
        k_new = self.W_key(x).unflatten(2, (self.num_heads, self.d_head)).transpose(1, 2)
        v_new = self.W_value(x).unflatten(2, (self.num_heads, self.d_head)).transpose(1, 2)
        if cache is None:
            keys, values, start = k_new, v_new, 0
        else:
            keys = torch.cat([cache[0], k_new], dim=-2)
            values = torch.cat([cache[1], v_new], dim=-2)
            start = cache[0].shape[-2]
        end = start + x.shape[1]
        if end > self.context_length:
            raise ValueError(f"{end} tokens, but at most {self.context_length}")
        scores = torch.einsum("bhqd,bhkd->bhqk", q, keys) * self.d_head**-0.5
        if cache is None:
            scores = scores.masked_fill(self.mask[:end, :end], -torch.inf)
        weights = F.softmax(scores, dim=-1)
        weights = F.dropout(weights, self.rate, self.training)
        context = torch.einsum("bhqk,bhkd->bqhd", weights, values).flatten(2)
        return self.out_proj(context), (keys, values)
