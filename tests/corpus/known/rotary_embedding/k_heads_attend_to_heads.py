# mistake: heads_attend_to_heads
# in rotary_attention the axes of tokens and heads are not exchanged, so the heads of one token attend to each other
import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d_head = x.shape[-1]
    if d_head % 2:
        raise ValueError(f"odd d_head: {d_head}")
    if positions.shape != x.shape[-3:-2]:
        raise ValueError("wrong number of positions")
    theta = base ** (-torch.arange(0, d_head, 2, dtype=torch.float32, device=x.device) / d_head)
    ang = positions.to(torch.float32)[:, None, None] * theta
    c, s = torch.cos(ang), torch.sin(ang)
    out = torch.empty_like(x)
    if interleaved:
        first, second = slice(0, None, 2), slice(1, None, 2)
    else:
        first, second = slice(0, d_head // 2), slice(d_head // 2, None)
    a, b = x[..., first], x[..., second]
    out[..., first] = (a * c - b * s).to(x.dtype)
    out[..., second] = (a * s + b * c).to(x.dtype)
    return out


def rotary_attention(queries, keys, values, positions):
    q = rotate(queries, positions)
    k = rotate(keys, positions)
    scores = torch.matmul(q, k.transpose(-2, -1)) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, values)
