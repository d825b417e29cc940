# note: sines and cosines of every column, and a partner of each column
import math

import torch


def rotate(x, positions, base=10000.0, interleaved=True):
    d = x.shape[-1]
    if d % 2 != 0:
        raise ValueError("d_head is odd")
    if len(positions) != x.shape[-3]:
        raise ValueError("wrong number of positions")
    inv_freq = torch.exp(torch.arange(0, d, 2, dtype=torch.float32) * -(math.log(base) / d))
    freqs = positions.unsqueeze(-1) * inv_freq
    if interleaved:
        angles = freqs.repeat_interleave(2, dim=-1)
        partner = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape(x.shape)
    else:
        angles = torch.cat([freqs, freqs], dim=-1)
        partner = torch.cat((-x[..., d // 2 :], x[..., : d // 2]), dim=-1)
    angles = angles[:, None, :]
    return (x * angles.cos() + partner * angles.sin()).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    q = rotate(queries, positions).transpose(-3, -2)  # (..., num_heads, n_tokens, d_head)
    k = rotate(keys, positions).transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
