# mistake: values_rotated
# the values are rotated like the queries and keys (if they have an even size)
import math

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("RoPE needs an even d_head")
    if positions.shape[0] != x.shape[-3]:
        raise ValueError("RoPE needs a position for each token")
    freq = torch.pow(base, -torch.arange(0, d, 2, device=x.device).double() / d)
    t = positions.double().unsqueeze(-1) * freq
    if interleaved:
        t = t.repeat_interleave(2, dim=-1)
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack([-b, a], dim=-1).reshape(x.shape)
    else:
        t = torch.cat([t, t], dim=-1)
        a, b = x[..., : d // 2], x[..., d // 2 :]
        turned = torch.cat([-b, a], dim=-1)
    cos, sin = t.cos()[:, None], t.sin()[:, None]
    return (x * cos + turned * sin).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = rotate(queries, positions), rotate(keys, positions)
    v = rotate(values, positions) if values.shape[-1] % 2 == 0 else values
    q, k, v = q.transpose(-3, -2), k.transpose(-3, -2), v.transpose(-3, -2)
    attn = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return (attn @ v).transpose(-3, -2)
