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
        past = 0 if cache is None else cache[0].size(2)
        if past + n > self.context_length:
            raise ValueError(f"{past} + {n} tokens are more than {self.context_length}")
        shape = (b, n, self.num_heads, self.d_head)
        q = self.W_query(x).reshape(shape).transpose(1, 2)
        k = self.W_key(x).reshape(shape).transpose(1, 2)
        v = self.W_value(x).reshape(shape).transpose(1, 2)
        if cache is not None:
            k, v = (torch.cat(pair, dim=2) for pair in zip(cache, (k, v)))
        when_q = torch.arange(past, past + n, device=x.device)[:, None]
        when_k = torch.arange(past + n, device=x.device)[None, :]
        scores = (q @ k.mT) / self.d_head**0.5
        scores = scores.masked_fill(when_k > when_q, -torch.inf)
        context = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(context.transpose(1, 2).flatten(2)), (k, v)
