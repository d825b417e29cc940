# mistake: cache_replaced
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


    def split_heads(self, t: Tensor) -> Tensor:
        b, n, _ = t.shape
        return t.view(b, n, self.num_heads, self.d_head).transpose(1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        b, n, _ = x.shape
        q = self.split_heads(self.W_query(x))
        k_new = self.split_heads(self.W_key(x))
        v_new = self.split_heads(self.W_value(x))
        if cache is None:
            k, v = k_new, v_new
        else:
            k = torch.cat([cache[0], k_new], dim=-2)
            v = torch.cat([cache[1], v_new], dim=-2)
        total = k.shape[-2]
        if total > self.context_length:
            raise ValueError("context is full")

        att = q @ k.mT / self.d_head**0.5
        blocked = torch.triu(torch.ones(n, total, dtype=torch.bool, device=x.device), total - n + 1)
        att = att.masked_fill(blocked, float("-inf")).softmax(-1)
        att = self.dropout(att)
        y = (att @ v).transpose(1, 2).reshape(b, n, -1)
        return self.out_proj(y), (k_new, v_new)
