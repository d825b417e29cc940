# note: batch and heads are one axis of bmm, the mask is a tril with a shifted diagonal and torch.where, and the empty cache is a tensor with no tokens
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

    def empty(self, x: Tensor) -> Cache:
        nothing = x.new_zeros(x.shape[0], self.num_heads, 0, self.d_head)
        return nothing, nothing

    def heads(self, t: Tensor) -> Tensor:
        b, n, _ = t.shape
        return t.reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        old_k, old_v = self.empty(x) if cache is None else cache
        b, n, _ = x.shape
        seen = old_k.shape[-2]
        if seen + n > self.context_length:
            raise ValueError("the sequence is longer than context_length")
        keys = torch.concatenate((old_k, self.heads(self.W_key(x))), -2)
        values = torch.concatenate((old_v, self.heads(self.W_value(x))), -2)
        q = self.heads(self.W_query(x)).flatten(0, 1)
        scores = torch.bmm(q, keys.flatten(0, 1).mT) * self.d_head**-0.5
        allowed = torch.ones(n, seen + n, dtype=torch.bool, device=x.device).tril(diagonal=seen)
        scores = torch.where(allowed, scores, -torch.inf)
        mixed = torch.bmm(self.dropout(scores.softmax(2)), values.flatten(0, 1))
        mixed = mixed.unflatten(0, (b, self.num_heads)).transpose(1, 2).reshape(b, n, -1)
        return self.out_proj(mixed), (keys, values)
