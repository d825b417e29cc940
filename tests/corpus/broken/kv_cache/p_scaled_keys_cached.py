# promise: The keys in the cache are divided by sqrt(d_head) already, not as W_key gives them.
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

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        split = (self.num_heads, self.d_head)
        q = self.W_query(x).unflatten(-1, split).transpose(1, 2)
        k = self.W_key(x).unflatten(-1, split).transpose(1, 2) / self.d_head**0.5
        v = self.W_value(x).unflatten(-1, split).transpose(1, 2)
        if cache is not None:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        n, total = x.shape[1], k.shape[2]
        if total > self.context_length:
            raise ValueError(f"{total} > {self.context_length}")
        scores = q @ k.transpose(-2, -1)
        if n > 1:
            later = torch.arange(total, device=x.device) > torch.arange(total - n, total, device=x.device)[:, None]
            scores = scores.masked_fill(later, float("-inf"))
        weights = self.dropout(scores.softmax(dim=-1))
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2)), (k, v)
