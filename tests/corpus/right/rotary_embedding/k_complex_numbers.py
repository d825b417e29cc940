# note: pairs become complex numbers that are multiplied by torch.polar; attention moves the heads in front with movedim
import math

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    n, _, d = x.shape[-3:]
    if d % 2:
        raise ValueError(f"d_head = {d} is odd")
    if positions.ndim != 1 or positions.numel() != n:
        raise ValueError(f"{positions.numel()} positions for {n} tokens")
    rate = torch.as_tensor(base, dtype=torch.float64) ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = positions.to(torch.float64)[:, None] * rate.to(positions.device)
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    turn = torch.polar(torch.ones_like(angle), angle)[:, None, :]  # (n, 1, d/2), all heads alike
    turn = turn.to(torch.complex128 if wide == torch.float64 else torch.complex64)
    y = x.to(wide)
    if interleaved:
        a, b = y[..., 0::2], y[..., 1::2]
    else:
        a, b = y[..., : d // 2], y[..., d // 2 :]
    z = torch.complex(a.contiguous(), b.contiguous()) * turn
    out = torch.view_as_real(z)  # (..., d/2, 2)
    if not interleaved:
        out = out.mT
    return out.reshape(x.shape).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions).movedim(-2, -3)
    k = rotate(keys, positions).movedim(-2, -3)
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return (w @ values.movedim(-2, -3)).movedim(-3, -2)
