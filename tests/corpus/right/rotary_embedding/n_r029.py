# style: unusual
import torch
from torch import Tensor


def _partner(x: Tensor, interleaved: bool) -> Tensor:
    """(a, b) -> (-b, a) for each pair, in place of the pair"""
    half = x.shape[-1] // 2
    if interleaved:
        flipped = x.reshape(*x.shape[:-1], half, 2).flip(-1)
        sign = torch.tensor([-1.0, 1.0], dtype=x.dtype, device=x.device)
        return (flipped * sign).reshape(x.shape)
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    """Turn each pair of columns of x by an angle that grows with the token's position."""
    d = x.size(-1)
    if d % 2:
        raise ValueError(f"d_head has to be even, it is {d}")
    if tuple(positions.shape) != (x.size(-3),):
        raise ValueError("positions do not fit to the tokens of x")
    freq = torch.pow(torch.tensor(float(base), dtype=torch.float64), -torch.arange(0, d, 2, dtype=torch.float64) / d)
    freq = freq.to(x.device)
    freq = freq.repeat_interleave(2) if interleaved else freq.repeat(2)
    theta = positions.double()[:, None, None] * freq  # (n_tokens, 1, d_head)
    wide = x.double()
    return (wide * theta.cos() + _partner(wide, interleaved) * theta.sin()).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return what each head of each token attends to, where rotated queries meet rotated keys."""
    q, k = (rotate(t, positions).movedim(-2, -3) for t in (queries, keys))
    weights = torch.softmax((q @ k.mT).div(k.size(-1) ** 0.5), dim=-1)
    return torch.matmul(weights, values.movedim(-2, -3)).movedim(-3, -2)
