# mistake: turned_with_the_turned
import math

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d = x.size(-1)
    if d % 2 == 1:
        raise ValueError("need an even number of columns")
    if len(positions) != x.size(-3):
        raise ValueError("need one position for each token")
    exponent = torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d
    theta = positions.to(torch.float64).view(-1, 1, 1) * torch.exp(-math.log(base) * exponent)
    c, s = torch.cos(theta), torch.sin(theta)
    if interleaved:
        a, b = x[..., ::2], x[..., 1::2]
    else:
        a, b = x[..., : d // 2], x[..., d // 2 :]
    a = a * c - b * s
    b = a * s + b * c
    if interleaved:
        out = torch.stack((a, b), -1).reshape(x.shape)
    else:
        out = torch.cat((a, b), -1)
    return out.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    queries = rotate(queries, positions).movedim(-2, -3)
    keys = rotate(keys, positions).movedim(-2, -3)
    weights = torch.softmax(queries @ keys.transpose(-1, -2) / math.sqrt(queries.size(-1)), dim=-1)
    return (weights @ values.movedim(-2, -3)).movedim(-3, -2)
