# mistake: whole_positions_only
# the positions are turned into whole numbers first, so fractions are lost
import math

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    *_, n_tokens, n_heads, d_head = x.shape
    if d_head % 2:
        raise ValueError(f"d_head {d_head} is not even")
    if positions.numel() != n_tokens:
        raise ValueError(f"{n_tokens} tokens, {positions.numel()} positions")
    theta = 1.0 / (base ** (torch.arange(0, d_head, 2, device=x.device)[: d_head // 2].float() / d_head))
    freqs = torch.einsum("n,f->nf", positions.long().float(), theta)
    cos, sin = freqs.cos().unsqueeze(1), freqs.sin().unsqueeze(1)
    if interleaved:
        even, odd = x[..., 0::2], x[..., 1::2]
        y = torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)
    else:
        lo, hi = x.tensor_split(2, dim=-1)
        y = torch.cat((lo * cos - hi * sin, lo * sin + hi * cos), -1)
    return y.type_as(x)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions).swapaxes(-2, -3)
    k = rotate(keys, positions).swapaxes(-2, -3)
    p = torch.softmax(q.matmul(k.swapaxes(-1, -2)).div(math.sqrt(q.shape[-1])), -1)
    return p.matmul(values.swapaxes(-2, -3)).swapaxes(-2, -3)
