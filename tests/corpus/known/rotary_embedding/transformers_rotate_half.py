# mistake: always_halves
import math

import torch


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def rotate(x, positions, base=10000.0, interleaved=True):
    dim = x.shape[-1]
    if dim % 2:
        raise ValueError("odd")
    if positions.shape[0] != x.shape[-3]:
        raise ValueError("positions")
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
    freqs = torch.outer(positions.float(), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    cos, sin = emb.cos().unsqueeze(1), emb.sin().unsqueeze(1)
    return ((x * cos) + (rotate_half(x) * sin)).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    q = rotate(queries, positions).transpose(-3, -2)  # (..., num_heads, n_tokens, d_head)
    k = rotate(keys, positions).transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
