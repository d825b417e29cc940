# mistake: columns_dealt_out
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

    def _cut(self, t: Tensor) -> Tensor:
        return t.unflatten(-1, (self.d_head, self.num_heads)).permute(0, 3, 1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        k, v = self._cut(self.W_key(x)), self._cut(self.W_value(x))
        if cache:
            k = torch.cat((cache[0], k), dim=2)
            v = torch.cat((cache[1], v), dim=2)
        m, n = k.shape[2], x.shape[1]
        if m > self.context_length:
            raise ValueError("too many tokens")
        future = torch.ones(m, m, dtype=torch.bool, device=x.device).triu(1)[m - n :] if n > 1 else None
        s = self._cut(self.W_query(x)).matmul(k.mT) / self.d_head**0.5
        if future is not None:
            s = s.masked_fill(future, -torch.inf)
        o = self.dropout(s.softmax(-1)) @ v
        return self.out_proj(o.permute(0, 2, 3, 1).flatten(2)), (k, v)
