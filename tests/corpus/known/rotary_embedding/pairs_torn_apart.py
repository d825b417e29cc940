# mistake: pairs_not_put_back
# with interleaved pairs, all first numbers of the turned pairs come into the first half of the columns and the second ones into the other half, instead of back into their columns
import math

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    n, _, d = x.shape[-3:]
    if d % 2 != 0:
        raise ValueError("d_head must be even")
    if positions.shape != (n,):
        raise ValueError("positions must be (n_tokens,)")
    inv_freq = 1.0 / base ** (torch.arange(0, d, 2, device=x.device, dtype=torch.float64) / d)
    freqs = torch.outer(positions.double(), inv_freq)[:, None, :]
    cos, sin = freqs.cos(), freqs.sin()
    if interleaved:
        a, b = x[..., ::2].double(), x[..., 1::2].double()
    else:
        a, b = x.double().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions).transpose(-2, -3)
    k = rotate(keys, positions).transpose(-2, -3)
    v = values.transpose(-2, -3)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return (torch.softmax(scores, dim=-1) @ v).transpose(-2, -3)
