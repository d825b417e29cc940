# right: batch and heads are folded into one axis for bmm, and only the scores within the chunk are masked, apart from those with the cache

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
        b, t, _ = x.shape
        h, d = self.num_heads, self.d_head

        def fold(y: Tensor) -> Tensor:
            return y.reshape(b, t, h, d).permute(0, 2, 1, 3).reshape(b * h, t, d)

        q, k, v = map(fold, (self.W_query(x), self.W_key(x), self.W_value(x)))
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        table = torch.bmm(q, k.transpose(1, 2)).masked_fill(hidden, -torch.inf)
        if cache is not None:
            past_k, past_v = (part.reshape(b * h, part.shape[2], d) for part in cache)
            if past_k.shape[1] + t > self.context_length:
                raise ValueError("cache and x are longer than context_length")
            table = torch.cat((torch.bmm(q, past_k.transpose(1, 2)), table), dim=2)
            k = torch.cat((past_k, k), dim=1)
            v = torch.cat((past_v, v), dim=1)
        elif t > self.context_length:
            raise ValueError("x is longer than context_length")
        weights = self.dropout(torch.softmax(table / d**0.5, dim=2))
        seen = torch.bmm(weights, v).reshape(b, h, t, d)
        merged = seen.permute(0, 2, 1, 3).reshape(b, t, h * d)
        return self.out_proj(merged), (k.reshape(b, h, -1, d), v.reshape(b, h, -1, d))
