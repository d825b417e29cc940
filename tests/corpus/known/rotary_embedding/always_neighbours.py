# mistake: always_neighbours
import math

import torch


def rotate(x, positions, base=10000.0, interleaved=True):
    if x.shape[-1] % 2 != 0:
        raise ValueError("d_head must be even")
    if len(positions) != x.shape[-3]:
        raise ValueError("one position per token")
    d = x.shape[-1]
    w = 1.0 / base ** (torch.arange(0, d, 2) / d)
    turns = torch.polar(torch.ones(len(positions), d // 2), positions.float()[:, None] * w)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * turns[:, None]).flatten(-2).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    q = rotate(queries, positions).transpose(-3, -2)  # (..., num_heads, n_tokens, d_head)
    k = rotate(keys, positions).transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
