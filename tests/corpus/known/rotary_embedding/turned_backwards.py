# mistake: angle_sign
# each pair is turned by minus its angle, to (a cos + b sin, b cos - a sin)
import math

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    n, h, d = x.shape[-3:]
    if d % 2:
        raise ValueError("odd")
    if positions.shape != (n,):
        raise ValueError("positions")
    angle = positions.double()[:, None] / base ** (torch.arange(d // 2, device=x.device).double() * 2 / d)
    cos, sin = angle.cos(), angle.sin()
    matrix = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    if interleaved:
        pairs = x.double().unflatten(-1, (d // 2, 2))
        return torch.einsum("...nhpi,npij->...nhpj", pairs, matrix).flatten(-2).to(x.dtype)
    pairs = x.double().unflatten(-1, (2, d // 2))
    return torch.einsum("...nhip,npij->...nhjp", pairs, matrix).flatten(-2).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions)
    k = rotate(keys, positions)
    s = torch.einsum("...nhd,...mhd->...hnm", q, k) / math.sqrt(q.shape[-1])
    return torch.einsum("...hnm,...mhv->...nhv", s.softmax(-1), values)
