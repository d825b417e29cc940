# promise: The softmax subtracts the largest score of each head and query place over the whole batch, so a sentence with much larger scores makes others nan.
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
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        if cache is not None:
            k = torch.cat((cache[0], k), dim=2)
            v = torch.cat((cache[1], v), dim=2)
        n, total = q.size(2), k.size(2)
        if total > self.context_length:
            raise ValueError("too many tokens for this context")
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / self.d_head**0.5
        seen = torch.ones(n, total, dtype=torch.bool, device=x.device).tril(total - n)
        scores = scores.masked_fill(~seen, float("-inf"))
        e = torch.exp(scores - scores.detach().amax((0, 3), keepdim=True))
        weights = self.dropout(e / e.sum(-1, keepdim=True))
        y = torch.einsum("bhqk,bhkd->bqhd", weights, v)
        return self.out_proj(y.flatten(-2)), (k, v)
