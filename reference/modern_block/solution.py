"""Reference solution: rotary attention with a cache of shared heads, in a LLaMA block."""

import torch
from rms_norm import RMSNorm
from swiglu import SwiGLU
from torch import Tensor, nn

KVCache = tuple[Tensor, Tensor]  # keys and values, (batch, num_kv_heads, n_cached, d_head) each


class RotaryAttention(nn.Module):
    """Causal attention with rotary positions, heads of keys that are shared, and a cache.

    Raises ValueError if num_heads does not divide d_out, or num_kv_heads num_heads, and for an odd
    size of the heads.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        num_kv_heads: int,
        base: float = 10000.0,
    ) -> None:
        super().__init__()
        # --- solution
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_kv_heads} heads of keys do not divide {num_heads} heads")
        self.d_head = d_out // num_heads
        if self.d_head % 2 != 0:
            raise ValueError(f"d_head is {self.d_head}, but pairs need an even number of columns")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.context_length, self.base = context_length, base
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        # --- end

    def forward(self, x: Tensor, cache: KVCache | None = None) -> tuple[Tensor, KVCache]:
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache.

        Raises ValueError for more tokens than context_length, those in the cache included.
        """
        # --- solution
        n_tokens = x.shape[1]
        n_cached = 0 if cache is None else cache[0].shape[2]
        n_keys = n_cached + n_tokens
        if n_keys > self.context_length:
            raise ValueError(f"{n_keys} tokens exceed the context of {self.context_length}")

        each = (-1, self.d_head)  # the columns of a head are neighbours
        queries = self.W_query(x).unflatten(2, each).transpose(1, 2)  # (batch, heads, n_tokens, d)
        keys = self.W_key(x).unflatten(2, each).transpose(1, 2)  # (batch, kv_heads, n_tokens, d)
        values = self.W_value(x).unflatten(2, each).transpose(1, 2)  # as keys

        dtype = torch.promote_types(x.dtype, torch.float32)  # of the angles
        pairs = torch.arange(0, self.d_head, 2, dtype=dtype, device=x.device)  # (n_pairs,)
        positions = torch.arange(n_cached, n_keys, dtype=dtype, device=x.device)  # (n_tokens,)
        angles = positions[:, None] / self.base ** (pairs / self.d_head)  # (n_tokens, n_pairs)
        both = torch.cat([queries, keys], dim=1)  # (batch, heads + kv_heads, n_tokens, d_head)
        a, b = both[..., 0::2], both[..., 1::2]  # (batch, heads + kv_heads, n_tokens, n_pairs)
        cos, sin = angles.cos(), angles.sin()  # (n_tokens, n_pairs)
        turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)  # (..., n_pairs, 2)
        rotated = turned.flatten(-2).to(x.dtype)  # (batch, heads + kv_heads, n_tokens, d_head)
        queries, keys = rotated.split([self.num_heads, self.num_kv_heads], dim=1)  # as before

        if cache is not None:
            keys = torch.cat([cache[0], keys], dim=2)  # (batch, kv_heads, n_keys, d_head)
            values = torch.cat([cache[1], values], dim=2)  # (batch, kv_heads, n_keys, d_head)
        # The heads of a group are neighbours: (batch, kv_heads, group, n_tokens, d_head).
        grouped = queries.unflatten(1, (self.num_kv_heads, -1))
        products = grouped @ keys.unsqueeze(2).mT  # (batch, kv_heads, group, n_tokens, n_keys)
        scores = products * self.d_head**-0.5  # (batch, kv_heads, group, n_tokens, n_keys)
        visible = x.new_ones(n_tokens, n_keys).tril(n_cached).bool()  # (n_tokens, n_keys)
        scores = scores.masked_fill(~visible, -torch.inf)  # as scores
        weights = torch.softmax(scores, dim=-1)  # as scores
        weights = self.dropout(weights)  # as scores
        context = weights @ values.unsqueeze(2)  # (batch, kv_heads, group, n_tokens, d_head)
        context = context.flatten(1, 2).transpose(1, 2).flatten(2)  # (batch, n_tokens, d_out)
        output = self.out_proj(context)  # (batch, n_tokens, d_out)
        return output, (keys, values)
        # --- end


class ModernBlock(nn.Module):
    """Rotary attention, then SwiGLU, each behind an RMS norm and beside a residual connection."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        d_ff: int,
        context_length: int,
        dropout: float = 0.0,
        base: float = 10000.0,
    ) -> None:
        super().__init__()
        # --- solution
        self.norm1 = RMSNorm(d_model)
        self.attention = RotaryAttention(
            d_model, d_model, context_length, dropout, num_heads, num_kv_heads, base
        )
        self.norm2 = RMSNorm(d_model)
        self.feed_forward = SwiGLU(d_model, d_ff, dropout)
        # --- end

    def forward(self, x: Tensor, cache: KVCache | None = None) -> tuple[Tensor, KVCache]:
        """Map the next tokens x (batch, n_tokens, d_model) to the same shape and a cache."""
        # --- solution
        attended, cache = self.attention(self.norm1(x), cache)  # (batch, n_tokens, d_model)
        x = x + attended  # (batch, n_tokens, d_model)
        output = x + self.feed_forward(self.norm2(x))  # (batch, n_tokens, d_model)
        return output, cache
        # --- end
