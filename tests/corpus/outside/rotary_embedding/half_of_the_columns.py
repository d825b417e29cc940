# mistake: only the first half of the pairs is turned
import math

import torch


def rotate(x, positions, base=10000.0, interleaved=True):
    if x.shape[-1] % 2 != 0:
        raise ValueError("d_head must be even")
    if len(positions) != x.shape[-3]:
        raise ValueError("one position per token")
    d = x.shape[-1]
    rates = base ** (-torch.arange(0, d, 2, dtype=torch.float32, device=x.device) / d)
    angle = (positions.float()[:, None] * rates).unsqueeze(1)  # (n_tokens, 1, d / 2)
    angle = angle * (torch.arange(d // 2) < (d + 3) // 4)
    cos, sin = angle.cos(), angle.sin()
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).type_as(x)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1).type_as(x)


def rotary_attention(queries, keys, values, positions):
    q = rotate(queries, positions).transpose(-3, -2)  # (..., num_heads, n_tokens, d_head)
    k = rotate(keys, positions).transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
