# mistake: unmasked_in_chunk
import math

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]  # keys and values, (batch, num_heads, n_cached, d_head) each


class CachedAttention(nn.Module):
    """Causal multi-head attention over a sequence that arrives in chunks."""

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
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        self.context_length = context_length
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def split(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache."""
        n_tokens = x.shape[1]
        n_cached = 0 if cache is None else cache[0].shape[2]
        total = n_cached + n_tokens
        if total > self.context_length:
            raise ValueError(f"{total} tokens, but at most {self.context_length} fit")
        queries = self.split(self.W_query(x))
        keys = self.split(self.W_key(x))
        values = self.split(self.W_value(x))
        if cache is not None:
            keys = torch.cat((cache[0], keys), dim=2)
            values = torch.cat((cache[1], values), dim=2)
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.d_head)
        later = torch.ones(n_tokens, total, dtype=torch.bool, device=x.device)
        later = later.triu(diagonal=n_cached + 1)
        if cache is None:
            scores = scores.masked_fill(later, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        context = self.dropout(weights) @ values
        return self.out_proj(context.transpose(1, 2).flatten(2)), (keys, values)
