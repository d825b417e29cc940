# mistake: mask_not_shifted
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


    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache."""
        batch, n_tokens, _ = x.shape
        shape = (batch, n_tokens, self.num_heads, self.d_head)
        queries = self.W_query(x).view(shape).transpose(1, 2)
        keys = self.W_key(x).view(shape).transpose(1, 2)
        values = self.W_value(x).view(shape).transpose(1, 2)

        n_cached = 0
        if cache is not None:
            old_keys, old_values = cache
            n_cached = old_keys.shape[2]
            keys = torch.cat([old_keys, keys], dim=2)
            values = torch.cat([old_values, values], dim=2)
        n_total = n_cached + n_tokens
        if n_total > self.context_length:
            raise ValueError(f"{n_total} tokens do not fit into {self.context_length}")

        scores = queries @ keys.transpose(2, 3) / self.d_head**0.5
        future = torch.ones(n_tokens, n_total, dtype=torch.bool, device=x.device)
        future = torch.triu(future, diagonal=1)
        scores = scores.masked_fill(future, -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))

        context = (weights @ values).transpose(1, 2)
        context = context.reshape(batch, n_tokens, self.num_heads * self.d_head)
        return self.out_proj(context), (keys, values)
