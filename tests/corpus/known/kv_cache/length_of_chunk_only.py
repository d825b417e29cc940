# mistake: chunk_alone_checked

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

    def _heads(self, y: Tensor) -> Tensor:
        batch, n_tokens, _ = y.shape
        return y.reshape(batch, n_tokens, self.num_heads, self.d_head).transpose(1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"more than {self.context_length} tokens")
        queries = self._heads(self.W_query(x))
        keys = self._heads(self.W_key(x))
        values = self._heads(self.W_value(x))
        offset = 0
        if cache is not None:
            old_keys, old_values = cache
            offset = old_keys.size(2)
            keys = torch.cat([old_keys, keys], 2)
            values = torch.cat([old_values, values], 2)
        rows = torch.arange(n_tokens, device=x.device)[:, None] + offset
        columns = torch.arange(offset + n_tokens, device=x.device)
        scores = torch.matmul(queries, keys.transpose(2, 3)).div(self.d_head**0.5)
        scores = torch.where(columns <= rows, scores, float("-inf"))
        weights = self.dropout(torch.softmax(scores, -1))
        context = torch.matmul(weights, values).transpose(1, 2)
        return self.out_proj(context.reshape(x.shape[0], n_tokens, -1)), (keys, values)
