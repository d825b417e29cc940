# mistake: angle_sign
import math

import torch


def rotate(x, positions, base=10000.0, interleaved=True):
    if x.shape[-1] % 2 != 0:
        raise ValueError("d_head must be even")
    if len(positions) != x.shape[-3]:
        raise ValueError("one position per token")
    if not interleaved:
        order = torch.arange(x.shape[-1]).view(2, -1).T.flatten()
        back = order.argsort()
        return rotate(x[..., order], positions, base)[..., back]
    pair = torch.arange(x.shape[-1] // 2, dtype=torch.float64)
    angle = positions.double()[:, None] * base ** (-2 * pair / x.shape[-1])
    turn = torch.complex(angle.cos(), -angle.sin())[:, None]
    z = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * turn).flatten(-2).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    q = rotate(queries, positions).transpose(-3, -2)  # (..., num_heads, n_tokens, d_head)
    k = rotate(keys, positions).transpose(-3, -2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ values.transpose(-3, -2)).transpose(-3, -2)
