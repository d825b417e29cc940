# mistake: unmasked_in_chunk
import math

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]


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

    def _split(self, x: Tensor) -> Tensor:
        batch, n_tokens, _ = x.shape
        return x.reshape(batch, n_tokens, self.num_heads, self.d_head).transpose(1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache."""
        batch, n_tokens, _ = x.shape
        n_cached = 0 if cache is None else cache[0].shape[2]
        total = n_cached + n_tokens
        if total > self.context_length:
            raise ValueError("too many tokens")
        queries = self._split(self.W_query(x))
        keys = self._split(self.W_key(x))
        values = self._split(self.W_value(x))
        if cache is not None:
            keys = torch.cat((cache[0], keys), dim=2)
            values = torch.cat((cache[1], values), dim=2)
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.d_head)
        hidden = torch.ones(n_tokens, total, dtype=torch.bool, device=x.device).triu(n_cached + 1)
        if cache is None:
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = (weights @ values).transpose(1, 2).reshape(batch, n_tokens, -1)
        return self.out_proj(context), (keys, values)
