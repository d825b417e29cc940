# right: the twin of one with a mistake, sharedbuffer
# seen: MemTensor/MemOS pull 2303 (and claude-code-local issue 46): the cache that is handed out is the stored buffer itself, which every later call writes on in place, so a cache cannot be used for a second continuation.
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

    def _extend(self, old: Tensor | None, new: Tensor) -> Tensor:
        return new if old is None else torch.cat([old, new], dim=2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        b, n, _ = x.shape
        past = cache[0].size(2) if cache is not None else 0
        if past + n > self.context_length:
            raise ValueError(f"{past + n} tokens, but at most {self.context_length} fit")
        q, k, v = (
            layer(x).reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        keys = self._extend(cache[0] if cache else None, k)
        values = self._extend(cache[1] if cache else None, v)
        future = torch.ones(n, past + n, dtype=torch.bool, device=x.device).triu(past + 1)
        scores = (q @ keys.mT / self.d_head**0.5).masked_fill(future, -torch.inf)
        out = self.dropout(scores.softmax(-1)) @ values
        return self.out_proj(out.transpose(1, 2).reshape(b, n, -1)), (keys, values)
