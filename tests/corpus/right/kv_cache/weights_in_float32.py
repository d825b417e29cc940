# note: the softmax is in float32, as in large libraries
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
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache.

        Raises ValueError for more tokens than context_length, those in the cache included.
        """
        batch, n_tokens, _ = x.shape
        n_cached = 0 if cache is None else cache[0].shape[2]
        n_keys = n_cached + n_tokens
        if n_keys > self.context_length:
            raise ValueError(f"{n_keys} tokens exceed the context of {self.context_length}")

        heads = (batch, n_tokens, self.num_heads, self.d_head)
        queries = self.W_query(x).view(heads).transpose(1, 2)  # (batch, heads, n_tokens, d_head)
        keys = self.W_key(x).view(heads).transpose(1, 2)  # (batch, heads, n_tokens, d_head)
        values = self.W_value(x).view(heads).transpose(1, 2)  # (batch, heads, n_tokens, d_head)
        if cache is not None:
            keys = torch.cat([cache[0], keys], dim=2)  # (batch, heads, n_keys, d_head)
            values = torch.cat([cache[1], values], dim=2)  # (batch, heads, n_keys, d_head)

        products = queries @ keys.transpose(2, 3)  # (batch, heads, n_tokens, n_keys)
        scores = products * self.d_head**-0.5  # (batch, heads, n_tokens, n_keys)
        # Token i of the chunk is token n_cached + i of the sequence.
        pairs = x.new_ones(n_tokens, n_keys)  # (n_tokens, n_keys)
        visible = pairs.tril(diagonal=n_cached).bool()  # (n_tokens, n_keys)
        scores = scores.masked_fill(~visible, -torch.inf)  # (batch, heads, n_tokens, n_keys)
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(queries.dtype)  # (batch, heads, n_tokens, n_keys)
        weights = self.dropout(weights)  # (batch, heads, n_tokens, n_keys)

        context = weights @ values  # (batch, heads, n_tokens, d_head)
        context = context.transpose(1, 2).flatten(2)  # (batch, n_tokens, d_out)
        output = self.out_proj(context)  # (batch, n_tokens, d_out)
        return output, (keys, values)
