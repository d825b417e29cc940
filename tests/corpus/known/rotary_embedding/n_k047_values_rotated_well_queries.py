# mistake: values_rotated
import math

import torch
from torch import Tensor


def angles_of(positions: Tensor, d_head: int, base: float) -> tuple[Tensor, Tensor]:
    """Return cos and sin of the angles, (n_tokens, 1, d_head / 2), in float64."""
    i = torch.arange(d_head // 2, dtype=torch.float64, device=positions.device)
    angle = positions.to(torch.float64).unsqueeze(-1) / base ** (2 * i / d_head)
    return angle.cos().unsqueeze(1), angle.sin().unsqueeze(1)


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    """Turn each pair of columns of x by an angle that grows with the token's position."""
    n_tokens, d_head = x.shape[-3], x.shape[-1]
    if d_head % 2 != 0:
        raise ValueError("d_head must be even")
    if positions.dim() != 1 or positions.shape[0] != n_tokens:
        raise ValueError("there must be one position for each token")
    cos, sin = angles_of(positions, d_head, base)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x[..., : d_head // 2], x[..., d_head // 2 :]
    first = a * cos - b * sin
    second = a * sin + b * cos
    if interleaved:
        result = torch.stack([first, second], dim=-1).flatten(-2)
    else:
        result = torch.cat([first, second], dim=-1)
    return result.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return what each head of each token attends to, where rotated queries meet rotated keys."""
    q = rotate(queries, positions).transpose(-3, -2)  # (..., num_heads, n_tokens, d_head)
    k = rotate(keys, positions).transpose(-3, -2)
    v = rotate(values, positions).transpose(-3, -2)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return (weights @ v).transpose(-3, -2)
