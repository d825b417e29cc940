# right: forward uses the rate of the given nn.Dropout but draws the mask by hand; the cache that is returned is detached
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
        b, n, _ = x.shape
        split = lambda t: t.reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        past = 0 if cache is None else cache[0].shape[2]
        if past + n > self.context_length:
            raise ValueError("the context is full")
        if cache is not None:
            k = torch.cat((cache[0], k), dim=2)
            v = torch.cat((cache[1], v), dim=2)
        key_at = torch.arange(past + n, device=x.device)
        query_at = key_at[past:]
        scores = (q @ k.mT / self.d_head**0.5).masked_fill(key_at > query_at[:, None], -torch.inf)
        w = scores.softmax(-1)
        if self.training and (p := self.dropout.p) > 0:
            alive = torch.rand(w.shape, device=w.device) >= p
            w = torch.where(alive, w / (1 - p), 0.0) if p < 1 else w * 0
        y = self.out_proj((w @ v).transpose(1, 2).flatten(2))
        return y, (k.detach(), v.detach())
