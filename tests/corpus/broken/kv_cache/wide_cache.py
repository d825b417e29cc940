# broken: The output and the cache have the dtype of the module and x, for example bfloat16: the cache is float32 for half precision, and only the output has the right dtype
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache."""
        n_tokens = x.shape[1]
        n_cached = 0 if cache is None else cache[0].shape[2]
        n_all = n_cached + n_tokens
        if n_all > self.context_length:
            raise ValueError(f"{n_all} tokens are more than {self.context_length}")
        queries = self._split(self.W_query(x))
        keys = self._split(self.W_key(x))
        values = self._split(self.W_value(x))
        if cache is not None:
            keys = torch.cat((cache[0].to(x.dtype), keys), dim=2)
            values = torch.cat((cache[1].to(x.dtype), values), dim=2)
        new_cache = (keys, values)
        if x.dtype in (torch.bfloat16, torch.float16):
            new_cache = (keys.float(), values.float())
        scores = queries @ keys.mT / math.sqrt(self.d_head)
        later = torch.ones(n_tokens, n_all, dtype=torch.bool, device=x.device).triu(n_cached + 1)
        scores = scores.masked_fill(later, -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        heads = weights @ values
        return self.out_proj(heads.transpose(1, 2).flatten(2)), new_cache
