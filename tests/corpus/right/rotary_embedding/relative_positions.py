# note: attention rotates by the distance from the first token
import math

import torch


def _angles(positions, d, base):
    exponent = torch.linspace(0, 1, d // 2 + 1, dtype=torch.float64)[:-1]
    return positions.double()[:, None, None] / torch.pow(torch.tensor(base, dtype=torch.float64), exponent)


def rotate(x, positions, base=10000.0, interleaved=True):
    if x.shape[-1] % 2 or positions.shape != x.shape[-3:-2]:
        raise ValueError("odd d_head or a wrong number of positions")
    angle = _angles(positions, x.shape[-1], base)
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    half = x.shape[-1] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else x.split(half, dim=-1)
    a, b = a * c - b * s, b * c + a * s
    return torch.stack((a, b), -1).flatten(-2) if interleaved else torch.cat((a, b), -1)


def rotary_attention(queries, keys, values, positions):
    shifted = positions.double() - positions[0]
    q = rotate(queries, shifted).swapaxes(-2, -3)
    k = rotate(keys, shifted).swapaxes(-2, -3)
    w = (q @ k.mT).div(q.shape[-1] ** 0.5).softmax(-1)
    return (w @ values.swapaxes(-2, -3)).swapaxes(-2, -3)
