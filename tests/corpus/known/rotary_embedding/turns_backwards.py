# mistake: angle_sign

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    n_tokens, _, d_head = x.shape[-3:]
    if d_head % 2 == 1:
        raise ValueError("d_head is odd")
    if positions.shape != (n_tokens,):
        raise ValueError("one position per token, please")
    half = d_head // 2
    freqs = base ** (-2 * torch.arange(half, dtype=torch.float64, device=x.device) / d_head)
    angles = torch.outer(positions.to(torch.float64), freqs)[:, None, :]
    cos, sin = angles.cos().to(torch.float32), angles.sin().to(torch.float32)
    if x.dtype == torch.float64:
        cos, sin = angles.cos(), angles.sin()
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x[..., :half], x[..., half:]
    new_a = a * cos + b * sin
    new_b = b * cos - a * sin
    if interleaved:
        out = torch.stack([new_a, new_b], dim=-1).flatten(-2)
    else:
        out = torch.cat([new_a, new_b], dim=-1)
    return out.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions).transpose(-3, -2)
    k = rotate(keys, positions).transpose(-3, -2)
    v = values.transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / queries.shape[-1] ** 0.5, dim=-1)
    return (weights @ v).transpose(-3, -2)
