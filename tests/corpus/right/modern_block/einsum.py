# right
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
        def split(t, heads):
            return t.unflatten(-1, (heads, self.d_head)).movedim(2, 1)

        at = torch.arange(n_tokens, device=x.device) + n_cached
        q = rotate(split(torch.einsum("btd,od->bto", x, self.W_query.weight), self.num_heads), at, self.base)
        k = rotate(split(torch.einsum("btd,od->bto", x, self.W_key.weight), self.num_kv_heads), at, self.base)
        v = split(torch.einsum("btd,od->bto", x, self.W_value.weight), self.num_kv_heads)
        if cache is not None:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        q = q.unflatten(1, (self.num_kv_heads, -1))
        scores = torch.einsum("bkgqd,bknd->bkgqn", q, k) * self.d_head**-0.5
        seen = torch.arange(k.shape[2], device=x.device)[None, :] <= at[:, None]
        weights = self.dropout(torch.softmax(scores.masked_fill(~seen, -torch.inf), -1))
        out = torch.einsum("bkgqn,bknd->bqkgd", weights, v).flatten(2)
        return torch.einsum("bto,eo->bte", out, self.out_proj.weight), (k, v)


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
