# promise: Floating positions keep their dtype, so positions in half precision give angles in half precision.
import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d_head = x.shape[-1]
    if d_head % 2:
        raise ValueError("d_head must be even")
    if positions.shape != x.shape[-3:-2]:
        raise ValueError("there must be one position per token")
    if not positions.is_floating_point():
        positions = positions.double()
    freq = base ** (-torch.arange(0, d_head, 2, device=x.device, dtype=torch.float64) / d_head)
    angles = (positions[:, None] * freq.to(positions.dtype))[:, None, :]
    cos, sin = torch.cos(angles), torch.sin(angles)
    if x.dtype != torch.float64:
        cos, sin = cos.float(), sin.float()
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        y = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    else:
        a, b = x.chunk(2, dim=-1)
        y = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return y.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions).transpose(-3, -2)
    k = rotate(keys, positions).transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-1, -2) / queries.shape[-1] ** 0.5, dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
