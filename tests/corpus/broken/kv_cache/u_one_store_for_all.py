# promise: The cache lives in a buffer that is written in place, so a second continuation of a cache overwrites the result of the first.
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

    def _append(self, old: Tensor | None, new: Tensor) -> Tensor:
        batch, heads, n, d = new.shape
        start = 0 if old is None else old.size(2)
        store = None if old is None else old._base
        if store is None or store.shape != (batch, heads, self.context_length, d):
            store = new.new_zeros(batch, heads, self.context_length, d)
            if old is not None:
                store[:, :, :start] = old.detach()
        store[:, :, start : start + n] = new.detach()
        return store[:, :, : start + n]

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        start = 0 if cache is None else cache[0].size(2)
        end = start + x.size(1)
        if end > self.context_length:
            raise ValueError(f"{end} tokens")
        q, k, v = (
            layer(x).unflatten(2, (self.num_heads, self.d_head)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        old_k, old_v = (None, None) if cache is None else cache
        all_k = k if old_k is None else torch.cat([old_k, k], 2)
        all_v = v if old_v is None else torch.cat([old_v, v], 2)
        with torch.no_grad():
            grown = (self._append(old_k, k), self._append(old_v, v))
        hidden = torch.ones(x.size(1), end, dtype=torch.bool, device=x.device).triu(start + 1)
        scores = (q @ all_k.mT / self.d_head**0.5).masked_fill(hidden, -torch.inf)
        out = self.dropout(scores.softmax(-1)) @ all_v
        return self.out_proj(out.transpose(1, 2).flatten(2)), grown
