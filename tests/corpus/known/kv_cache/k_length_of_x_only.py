# mistake: chunk_alone_checked
# only the tokens of x are compared with context_length, so cache and x together may become longer
import math

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]


class CachedAttention(nn.Module):
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
        batch, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError(f"x has {n_tokens} tokens, context_length is {self.context_length}")

        def heads(t: Tensor) -> Tensor:
            return t.reshape(batch, n_tokens, self.num_heads, -1).permute(0, 2, 1, 3)

        q, k, v = heads(self.W_query(x)), heads(self.W_key(x)), heads(self.W_value(x))
        n_cached = 0
        if cache is not None:
            n_cached = cache[0].size(2)
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        visible = torch.ones(n_tokens, n_cached + n_tokens, device=x.device).tril(n_cached).bool()
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(self.d_head)
        weights = scores.masked_fill(~visible, -math.inf).softmax(-1)
        context = torch.einsum("bhij,bhjd->bihd", self.dropout(weights), v)
        return self.out_proj(context.reshape(batch, n_tokens, -1)), (k, v)
