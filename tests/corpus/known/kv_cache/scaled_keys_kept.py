# mistake: scaled_keys_cached
# the keys are divided by the root of d_head before they are cached, so the cache does not hold what W_key gives (the outputs are right)
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
        h, d = self.num_heads, self.d_head
        queries = self.W_query(x).unflatten(-1, (h, d)).movedim(1, 2)
        keys = self.W_key(x).unflatten(-1, (h, d)).movedim(1, 2) * d**-0.5
        values = self.W_value(x).unflatten(-1, (h, d)).movedim(1, 2)
        if cache is not None:
            keys = torch.cat((cache[0], keys), dim=-2)
            values = torch.cat((cache[1], values), dim=-2)
        n, total = queries.shape[-2], keys.shape[-2]
        if total > self.context_length:
            raise ValueError(f"{total} tokens")
        positions = torch.arange(total, device=x.device)
        hidden = positions > positions[total - n :, None]
        weights = (queries @ keys.mT).masked_fill(hidden, float("-inf")).softmax(-1)
        out = self.dropout(weights) @ values
        return self.out_proj(out.movedim(2, 1).flatten(-2)), (keys, values)
