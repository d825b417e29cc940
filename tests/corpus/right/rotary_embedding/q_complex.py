import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    *_, n_tokens, _, d_head = x.shape
    if d_head % 2:
        raise ValueError(f"d_head must be even, not {d_head}")
    if tuple(positions.shape) != (n_tokens,):
        raise ValueError(f"{tuple(positions.shape)} positions for {n_tokens} tokens")
    half = d_head // 2
    exponents = torch.arange(half, dtype=torch.float64, device=x.device) * 2 / d_head
    angles = torch.outer(positions.to(x.device, torch.float64), base**-exponents)
    turn = torch.polar(torch.ones_like(angles), angles).unsqueeze(1)  # (n_tokens, 1, half)

    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    pairs = wide.unflatten(-1, (half, 2) if interleaved else (2, half))
    if not interleaved:
        pairs = pairs.transpose(-1, -2)
    points = torch.complex(pairs[..., 0], pairs[..., 1])
    turned = torch.view_as_real(points * turn.to(points.dtype))
    if not interleaved:
        turned = turned.transpose(-1, -2)
    return turned.flatten(-2).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = rotate(queries, positions), rotate(keys, positions)
    scores = torch.einsum("...ihd,...jhd->...hij", q, k) / q.shape[-1] ** 0.5
    return torch.einsum("...hij,...jhv->...ihv", scores.softmax(dim=-1), values)
