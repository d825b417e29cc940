# right
import torch
import torch as t
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
    def __init__(s, d_in, d_out, context_length, dropout, num_heads, num_kv_heads, base=10000.0):
        super().__init__()
        s.e, s.h, s.k, s.n, s.b = d_out // num_heads, num_heads, num_kv_heads, context_length, base
        if d_out % num_heads or num_heads % num_kv_heads or s.e % 2: raise ValueError
        L = lambda a, b: nn.Linear(a, b, False)
        s.W_query, s.W_key, s.W_value, s.out_proj = L(d_in, d_out), L(d_in, s.k * s.e), L(d_in, s.k * s.e), L(d_out, d_out)
        s.d = nn.Dropout(dropout)
    def forward(s, x, cache=None):
        c = cache[0].size(2) if cache else 0
        if c + x.size(1) > s.n: raise ValueError
        p = t.arange(c, c + x.size(1), device=x.device)
        q, k, v = (w(x).unflatten(-1, (-1, s.e)).transpose(1, 2) for w in (s.W_query, s.W_key, s.W_value))
        q, k = rotate(q, p, s.b), rotate(k, p, s.b)
        k, v = cache = tuple(map(lambda o, n: t.cat([o, n], 2), cache, (k, v))) if cache else (k, v)
        k, v = (z.repeat_interleave(s.h // s.k, 1) for z in cache)
        m = t.ones(len(p), k.size(2), dtype=t.bool, device=x.device).tril(c)
        w = (q @ k.mT / s.e ** .5).where(m, -t.inf).softmax(-1)
        return s.out_proj((s.d(w) @ v).transpose(1, 2).flatten(2)), cache


class ModernBlock(nn.Module):
    def __init__(s, d_model, num_heads, num_kv_heads, d_ff, context_length, dropout=0.0, base=10000.0):
        super().__init__()
        s.norm1, s.norm2 = RMSNorm(d_model), RMSNorm(d_model)
        s.attention = RotaryAttention(d_model, d_model, context_length, dropout, num_heads, num_kv_heads, base)
        s.feed_forward = SwiGLU(d_model, d_ff, dropout)
    def forward(s, x, cache=None):
        a, cache = s.attention(s.norm1(x), cache)
        return (y := x + a) + s.feed_forward(s.norm2(y)), cache
