# mistake: pairs_not_put_back
import math

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    """Turn each pair of columns of x by an angle that grows with the token's position."""
    n_tokens, d_head = x.shape[-3], x.shape[-1]
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    if positions.shape != (n_tokens,):
        raise ValueError(f"{n_tokens} tokens need as many positions")
    even = torch.arange(0, d_head, 2, dtype=torch.float64, device=x.device)
    places = positions.to(torch.float64)
    angles = places.unsqueeze(-1) / base ** (even / d_head)
    wide = torch.promote_types(x.dtype, torch.float32)
    cos = angles.cos().unsqueeze(1).to(wide)
    sin = angles.sin().unsqueeze(1).to(wide)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x[..., : d_head // 2], x[..., d_head // 2 :]
    first = a * cos - b * sin
    second = a * sin + b * cos
    if interleaved:
        turned = torch.cat((first, second), dim=-1)
    else:
        turned = torch.cat((first, second), dim=-1)
    return turned.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return what each head of each token attends to, where rotated queries meet rotated keys."""
    q = rotate(queries, positions).transpose(-3, -2)
    k = rotate(keys, positions).transpose(-3, -2)
    v = values.transpose(-3, -2)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return (torch.softmax(scores, dim=-1) @ v).transpose(-3, -2)
