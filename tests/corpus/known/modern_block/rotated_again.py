# mistake: cached_keys_turned_again
# the cached keys are rotated again with the new ones
import torch
from rms_norm import RMSNorm
from swiglu import SwiGLU
from torch import nn


def rotate(x, positions, base=10000.0):
    """Turn the pairs of neighbours of x (..., n_tokens, d_head)."""
    wide = torch.promote_types(x.dtype, torch.float32)
    d_head = x.shape[-1]
    inverse = base ** -(torch.arange(0, d_head, 2, device=x.device, dtype=wide) / d_head)
    angles = positions.to(wide)[:, None] * inverse
    a, b = x[..., ::2], x[..., 1::2]
    pairs = (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos())
    return torch.stack(pairs, dim=-1).flatten(-2).to(x.dtype)


class RotaryAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads, base=10000.0
    ):
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("heads do not divide")
        self.d_head = d_out // num_heads
        if self.d_head % 2:
            raise ValueError("d_head is odd")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.context_length, self.base = context_length, base
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None):
        batch, n_tokens, _ = x.shape
        n_cached = 0 if cache is None else cache[0].shape[2]
        if n_cached + n_tokens > self.context_length:
            raise ValueError("too long")
        queries = self.W_query(x).view(batch, n_tokens, self.num_heads, self.d_head).transpose(1, 2)
        keys = self.W_key(x).view(batch, n_tokens, self.num_kv_heads, self.d_head).transpose(1, 2)
        values = self.W_value(x).view(batch, n_tokens, self.num_kv_heads, self.d_head).transpose(1, 2)
        positions = torch.arange(n_cached, n_cached + n_tokens, device=x.device)
        queries = rotate(queries, positions, self.base)
        if cache is not None:
            keys = torch.cat([cache[0], keys], dim=2)
            values = torch.cat([cache[1], values], dim=2)
        everywhere = torch.arange(keys.shape[2], device=x.device)
        keys = rotate(keys, everywhere, self.base)
        cache = (keys, values)
        group = self.num_heads // self.num_kv_heads
        keys = keys.repeat_interleave(group, dim=1)
        values = values.repeat_interleave(group, dim=1)
        scores = queries @ keys.transpose(2, 3) / self.d_head**0.5
        key_positions = torch.arange(keys.shape[2], device=x.device)
        scores = scores.masked_fill(key_positions > positions[:, None], float("-inf"))
        weights = self.dropout(scores.softmax(dim=-1))
        output = (weights @ values).transpose(1, 2).reshape(batch, n_tokens, -1)
        return self.out_proj(output), cache


class ModernBlock(nn.Module):
    def __init__(
        self, d_model, num_heads, num_kv_heads, d_ff, context_length, dropout=0.0, base=10000.0
    ):
        super().__init__()
        self.norm1 = RMSNorm(d_model)
        self.norm2 = RMSNorm(d_model)
        self.attention = RotaryAttention(
            d_model, d_model, context_length, dropout, num_heads, num_kv_heads, base
        )
        self.feed_forward = SwiGLU(d_model, d_ff, dropout)

    def forward(self, x, cache=None):
        attended, cache = self.attention(self.norm1(x), cache)
        x = x + attended
        return x + self.feed_forward(self.norm2(x)), cache
