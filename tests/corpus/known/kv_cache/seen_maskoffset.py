# mistake: mask_not_shifted
# seen: tinygrad pull 15949 and hyprstream pull 1521: the causal mask starts at the first key without regard to the cached ones, so a token with a cache sees only the first keys and not its own past.
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

    def _heads(self, t: Tensor) -> Tensor:
        return t.unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        queries = self._heads(self.W_query(x))
        keys = self._heads(self.W_key(x))
        values = self._heads(self.W_value(x))
        if cache is not None:
            keys = torch.cat([cache[0], keys], dim=2)
            values = torch.cat([cache[1], values], dim=2)
        n_new, n_all = queries.size(2), keys.size(2)
        if n_all > self.context_length:
            raise ValueError(f"{n_all} tokens are more than {self.context_length}")

        allowed = torch.ones(n_new, n_all, dtype=torch.bool, device=x.device)
        allowed = allowed.tril()
        scores = queries @ keys.transpose(2, 3) / self.d_head**0.5
        scores = scores.masked_fill(~allowed, float("-inf"))
        weights = self.dropout(scores.softmax(dim=-1))
        out = (weights @ values).transpose(1, 2).flatten(2)
        return self.out_proj(out), (keys, values)
