# mistake: odd_accepted
import math

import torch


def rotate(x, positions, base=10000.0, interleaved=True):
    if len(positions) != x.shape[-3]:
        raise ValueError("one position per token")
    d = x.shape[-1] - x.shape[-1] % 2
    rates = base ** (-torch.arange(0, d, 2).double() / d)
    angle = (positions.double()[:, None] * rates).unsqueeze(1)
    cos, sin = angle.cos(), angle.sin()
    out = x.clone()
    first = slice(0, d, 2) if interleaved else slice(0, d // 2)
    second = slice(1, d, 2) if interleaved else slice(d // 2, d)
    a, b = x[..., first], x[..., second]
    out[..., first] = (a * cos - b * sin).to(x.dtype)
    out[..., second] = (a * sin + b * cos).to(x.dtype)
    return out


def rotary_attention(queries, keys, values, positions):
    q = rotate(queries, positions).transpose(-3, -2)  # (..., num_heads, n_tokens, d_head)
    k = rotate(keys, positions).transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
