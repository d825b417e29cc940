"""Stand-in for the modern block: complex rotations, torch's own attention and norm."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

KVCache = tuple[Tensor, Tensor]  # keys and values, (batch, num_kv_heads, n_cached, d_head) each


class RotaryAttention(nn.Module):
    """Causal attention with rotary positions, heads of keys that are shared, and a cache."""

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
        if d_out % num_heads or num_heads % num_kv_heads or d_out // num_heads % 2:
            raise ValueError(f"no heads for {d_out=}, {num_heads=}, {num_kv_heads=}")
        self.d_head, self.base = d_out // num_heads, base
        self.context_length, self.rate = context_length, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)

    def forward(self, x: Tensor, cache: KVCache | None = None) -> tuple[Tensor, KVCache]:
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache."""
        n_tokens = x.shape[1]
        n_cached = 0 if cache is None else cache[0].shape[2]
        n_keys = n_cached + n_tokens
        if n_keys > self.context_length:
            raise ValueError(f"{n_keys} tokens exceed the context of {self.context_length}")
        queries, keys, values = (
            layer(x).unflatten(2, (-1, self.d_head)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )  # (batch, heads or kv_heads, n_tokens, d_head) each
        queries, keys = (self._turned(each, n_cached) for each in (queries, keys))
        if cache is not None:
            keys = torch.cat([cache[0], keys], dim=2)  # (batch, kv_heads, n_keys, d_head)
            values = torch.cat([cache[1], values], dim=2)  # (batch, kv_heads, n_keys, d_head)
        mask = torch.ones(n_tokens, n_keys, dtype=torch.bool, device=x.device).tril(n_cached)
        context = F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=mask,
            dropout_p=self.rate if self.training else 0.0,
            enable_gqa=True,
        )  # (batch, heads, n_tokens, d_head)
        return self.out_proj(context.transpose(1, 2).flatten(2)), (keys, values)

    def _turned(self, x: Tensor, first: int) -> Tensor:
        """Turn pairs of columns as complex numbers, by positions from `first` on."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # shape of x
        places = torch.arange(first, first + x.shape[2], device=x.device).to(wide.dtype)
        exponents = torch.arange(0, self.d_head, 2, device=x.device).to(wide.dtype) / self.d_head
        angles = torch.outer(places, self.base**-exponents)  # (n_tokens, n_pairs)
        turns = torch.polar(torch.ones_like(angles), angles)  # (n_tokens, n_pairs)
        points = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(points * turns).flatten(-2).to(x.dtype)  # shape of x


class _Norm(nn.Module):
    """RMS norm by torch's own function."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))  # (d_model,)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.gamma.shape, self.gamma, 1e-5)  # shape of x


class _FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, d_model: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.W_down(self.dropout(F.silu(self.W_gate(x)) * self.W_up(x)))  # shape of x


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
        self.norm1 = _Norm(d_model)
        heads = num_heads, num_kv_heads, base
        self.attention = RotaryAttention(d_model, d_model, context_length, dropout, *heads)
        self.norm2 = _Norm(d_model)
        self.feed_forward = _FeedForward(d_model, d_ff, dropout)

    def forward(self, x: Tensor, cache: KVCache | None = None) -> tuple[Tensor, KVCache]:
        """Map the next tokens x (batch, n_tokens, d_model) to the same shape and a cache."""
        attended, cache = self.attention(self.norm1(x), cache)  # (batch, n_tokens, d_model)
        x = x + attended  # (batch, n_tokens, d_model)
        return x + self.feed_forward(self.norm2(x)), cache  # (batch, n_tokens, d_model)
