# mistake: heads_attend_to_heads

import math

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d_head = x.shape[-1]
    if d_head % 2 != 0:
        raise ValueError("odd d_head")
    if positions.shape[0] != x.shape[-3]:
        raise ValueError("wrong number of positions")
    dtype = torch.promote_types(x.dtype, torch.float32)
    rates = torch.exp(torch.arange(0, d_head, 2, dtype=torch.float64, device=x.device) * (-math.log(base) / d_head))
    angles = positions.double()[:, None] * rates[None, :]
    if interleaved:
        angles = angles.repeat_interleave(2, dim=1)
        even, odd = x[..., 0::2], x[..., 1::2]
        partner = torch.stack((-odd, even), dim=-1).flatten(-2)
    else:
        angles = torch.cat((angles, angles), dim=1)
        low, high = x.chunk(2, dim=-1)
        partner = torch.cat((-high, low), dim=-1)
    cos = angles.cos().to(dtype).unsqueeze(1)
    sin = angles.sin().to(dtype).unsqueeze(1)
    return (x * cos + partner * sin).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    queries = rotate(queries, positions)
    keys = rotate(keys, positions)
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ values
