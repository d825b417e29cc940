# right: the twin of one with a mistake, halfangles
# seen: EleutherAI/gpt-neox issue 1003 and candle pull 3520: positions and frequencies are cast to the dtype of x before they are multiplied, so in half precision large positions give wrong angles.
import torch
from torch import Tensor

import math


def _angles(positions: Tensor, d: int, base: float, like: Tensor) -> Tensor:
    dtype = torch.float64
    frequencies = torch.exp(torch.arange(0, d, 2, dtype=torch.float64) * (-math.log(base) / d))
    p = positions.to(like.device, dtype)
    return torch.einsum("n,i->ni", p, frequencies.to(like.device, dtype))[:, None]


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    if x.shape[-1] % 2 != 0:
        raise ValueError(f"columns come in pairs, but d_head is {x.shape[-1]}")
    if tuple(positions.shape) != (x.shape[-3],):
        raise ValueError("the number of positions is not that of the tokens")
    angles = _angles(positions, x.shape[-1], base, x)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    half = x.shape[-1] // 2
    pairs = x.unflatten(-1, (half, 2)) if interleaved else x.unflatten(-1, (2, half)).mT
    a, b = pairs[..., 0], pairs[..., 1]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return (turned if interleaved else turned.mT).flatten(-2)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = (rotate(t, positions).movedim(-2, -3) for t in (queries, keys))
    scores = q @ k.mT / math.sqrt(queries.shape[-1])
    context = scores.softmax(dim=-1) @ values.movedim(-2, -3)
    return context.movedim(-3, -2)
