import math

import torch
from torch import Tensor


def _cos_sin(positions: Tensor, d_head: int, base: float) -> tuple[Tensor, Tensor]:
    i = torch.arange(d_head // 2, device=positions.device, dtype=torch.float64)
    freq = torch.exp(-2 * i / d_head * math.log(base))
    angle = positions.double()[:, None, None] * freq  # (n_tokens, 1, d_head / 2)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d = x.shape[-1]
    if d & 1:
        raise ValueError("d_head doit être pair")
    if positions.ndim != 1 or len(positions) != x.shape[-3]:
        raise ValueError("une position par jeton")
    cos, sin = _cos_sin(positions, d, base)
    z = x.double() if x.dtype == torch.float64 else x.float()
    cos, sin = cos.to(z), sin.to(z)
    if interleaved:
        a, b = z[..., 0::2], z[..., 1::2]
        out = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).reshape(z.shape)
    else:
        a, b = z.chunk(2, dim=-1)
        out = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return out.type_as(x)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    by_head = lambda t: t.transpose(-2, -3)
    q = by_head(rotate(queries, positions))
    k = by_head(rotate(keys, positions))
    w = torch.softmax(q @ k.mT / math.sqrt(queries.size(-1)), dim=-1)
    return by_head(w @ by_head(values))
