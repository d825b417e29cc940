# right: pairs are complex numbers that are multiplied by unit complex numbers, in double precision
import torch
from torch import Tensor


def _check(x: Tensor, positions: Tensor) -> None:
    if x.shape[-1] % 2 == 1:
        raise ValueError(f"d_head = {x.shape[-1]} is odd")
    if positions.dim() != 1 or positions.shape[0] != x.shape[-3]:
        raise ValueError(f"positions {tuple(positions.shape)} for {x.shape[-3]} tokens")


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    _check(x, positions)
    half = x.shape[-1] // 2
    speed = float(base) ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
    angle = positions.to(device=x.device, dtype=torch.float64)[:, None, None] * speed
    turn = torch.polar(torch.ones_like(angle), angle)
    axis = -1 if interleaved else -2
    points = x.double().unflatten(-1, (half, 2) if interleaved else (2, half))
    a, b = points.unbind(axis)
    turned = torch.complex(a, b) * turn
    return torch.stack([turned.real, turned.imag], dim=axis).flatten(-2).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = rotate(queries, positions), rotate(keys, positions)
    scores = torch.einsum("...qhd,...khd->...hqk", q, k) * queries.shape[-1] ** -0.5
    return torch.einsum("...hqk,...khd->...qhd", scores.softmax(-1), values)

