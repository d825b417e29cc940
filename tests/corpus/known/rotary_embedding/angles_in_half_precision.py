# mistake: angles_in_half_precision

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d = x.size(-1)
    if d % 2 != 0:
        raise ValueError(f"d_head must be even, not {d}")
    if len(positions) != x.size(-3):
        raise ValueError(f"{len(positions)} positions for {x.size(-3)} tokens")
    i = torch.arange(0, d, 2, device=x.device)
    inv_freq = (1.0 / base ** (i / d)).to(x.dtype)
    theta = positions.to(x.dtype)[:, None, None] * inv_freq
    cos, sin = torch.cos(theta), torch.sin(theta)
    if interleaved:
        a, b = x.unflatten(-1, (d // 2, 2)).unbind(-1)
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    Q, K = rotate(queries, positions), rotate(keys, positions)
    scores = torch.einsum("...qhd,...khd->...hqk", Q, K) / Q.size(-1) ** 0.5
    return torch.einsum("...hqk,...khd->...qhd", scores.softmax(-1), values)
