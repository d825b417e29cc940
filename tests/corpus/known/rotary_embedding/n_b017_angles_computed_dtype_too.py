# mistake: angles_in_half_precision
import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    """Turn each pair of columns of x by an angle that grows with the token's position.

    x            (..., n_tokens, num_heads, d_head)
    positions    (n_tokens,)
    interleaved  whether a pair is two columns side by side, or one of each half
    returns      the shape and dtype of x

    Raises ValueError for an odd d_head, and for positions of another number than n_tokens.
    """
    n_tokens, num_heads, d_head = x.shape[-3:]
    if d_head % 2:
        raise ValueError("d_head must be even")
    if positions.shape != (n_tokens,):
        raise ValueError("one position for each token, please")
    i = torch.arange(0, d_head, 2, dtype=x.dtype, device=x.device)
    angles = positions.to(x.dtype)[:, None, None] / base ** (i / d_head)
    cos, sin = torch.cos(angles), torch.sin(angles)
    out = torch.empty_like(x)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        out[..., 0::2] = a * cos - b * sin
        out[..., 1::2] = a * sin + b * cos
    else:
        a, b = x[..., : d_head // 2], x[..., d_head // 2 :]
        out[..., : d_head // 2] = a * cos - b * sin
        out[..., d_head // 2 :] = a * sin + b * cos
    return out


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return what each head of each token attends to, where rotated queries meet rotated keys."""
    q = rotate(queries, positions).transpose(-3, -2)
    k = rotate(keys, positions).transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
