# mistake: unmasked_in_chunk

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

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        b, n, _ = x.shape
        n_cached = 0 if cache is None else cache[0].shape[2]
        if n_cached + n > self.context_length:
            raise ValueError("too many tokens")

        def split(t: Tensor) -> Tensor:
            return t.reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)

        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        if cache is None:
            mask = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(mask, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = (weights @ v).transpose(1, 2).reshape(b, n, -1)
        return self.out_proj(out), (k, v)
