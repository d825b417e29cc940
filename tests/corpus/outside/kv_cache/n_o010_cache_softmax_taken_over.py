# mistake: not in the catalogue: With a cache, a softmax is taken over the cached keys and another over the new ones, and the two results are averaged.
import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]  # keys and values, (batch, num_heads, n_cached, d_head) each


class CachedAttention(nn.Module):
    """Causal multi-head attention over a sequence that arrives in chunks.

    context_length is the largest number of tokens, those in the cache included; dropout is the
    rate at which attention weights are dropped. Raises ValueError if num_heads does not divide
    d_out.
    """

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


    def _split(self, t: Tensor) -> Tensor:
        return t.view(t.shape[0], t.shape[1], self.num_heads, self.d_head).transpose(1, 2)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        if causal:
            n = q.shape[-2]
            hidden = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(hidden, -torch.inf)
        return self.dropout(scores.softmax(-1)) @ v

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        q, k, v = self._split(self.W_query(x)), self._split(self.W_key(x)), self._split(self.W_value(x))
        n_cached = 0 if cache is None else cache[0].shape[2]
        if n_cached + x.shape[1] > self.context_length:
            raise ValueError("too many tokens")
        heads = self._attend(q, k, v, causal=True)
        if cache is not None:
            # everything in the cache is in the past, so no mask is needed there
            heads = (heads + self._attend(q, cache[0], cache[1], causal=False)) / 2
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        out = heads.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1)
        return self.out_proj(out), (k, v)
