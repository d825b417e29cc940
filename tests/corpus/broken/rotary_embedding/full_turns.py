# broken: Positions may be large (some thousands): full turns are taken off with 2 pi = 6.2832, so angles of some thousands are wrong by about 0.01
import math

import torch
from torch import Tensor


def _angles(positions: Tensor, d_head: int, base: float) -> Tensor:
    """The angle of each pair at each position, (n_tokens, d_head / 2) in float64."""
    pairs = torch.arange(d_head // 2, dtype=torch.float64, device=positions.device)
    angles = positions.to(torch.float64).unsqueeze(1) / base ** (2 * pairs / d_head)
    return torch.fmod(angles, 6.2832)


def _turn(x: Tensor, angles: Tensor, interleaved: bool) -> Tensor:
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    cos, sin = angles.cos().to(wide).unsqueeze(1), angles.sin().to(wide).unsqueeze(1)
    wide_x = x.to(wide)
    if interleaved:
        a, b = wide_x[..., 0::2], wide_x[..., 1::2]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    else:
        a, b = wide_x.chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.to(x.dtype)


def _check(x: Tensor, positions: Tensor) -> None:
    n_tokens, _, d_head = x.shape[-3:]
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    if positions.shape != (n_tokens,):
        raise ValueError(f"{tuple(positions.shape)} positions for {n_tokens} tokens")


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    """Turn each pair of columns of x by an angle that grows with the token's position."""
    _check(x, positions)
    return _turn(x, _angles(positions, x.shape[-1], base), interleaved)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return what each head of each token attends to, where rotated queries meet rotated keys."""
    _check(queries, positions)
    d_head = queries.shape[-1]
    angles = _angles(positions, d_head, 10000.0)
    q = _turn(queries, angles, True).transpose(-3, -2)
    k = _turn(keys, angles, True).transpose(-3, -2)
    weights = torch.softmax(q @ k.mT / math.sqrt(d_head), dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
