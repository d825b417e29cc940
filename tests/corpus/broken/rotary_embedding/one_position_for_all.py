# broken: "positions of another number than n_tokens: both functions raise ValueError": a single position for several tokens is accepted and used for all of them
import math

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    """Turn each pair of columns of x by an angle that grows with the token's position."""
    n_tokens, _, d_head = x.shape[-3:]
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    if positions.shape not in ((n_tokens,), (1,)):
        raise ValueError(f"{tuple(positions.shape)} positions for {n_tokens} tokens")
    half = d_head // 2
    steps = torch.arange(half, dtype=torch.float64, device=x.device) * 2 / d_head
    angles = positions.to(torch.float64)[:, None] / base**steps
    cos, sin = torch.cos(angles)[:, None, :], torch.sin(angles)[:, None, :]
    wide = x.to(torch.float64)
    if interleaved:
        a, b = wide[..., 0::2], wide[..., 1::2]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    else:
        a, b = wide[..., :half], wide[..., half:]
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return what each head of each token attends to, where rotated queries meet rotated keys."""
    q = rotate(queries, positions).transpose(-3, -2)
    k = rotate(keys, positions).transpose(-3, -2)
    v = values.transpose(-3, -2)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return (torch.softmax(scores, dim=-1) @ v).transpose(-3, -2)
