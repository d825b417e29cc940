# mistake: pairs_not_put_back

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    *lead, n_tokens, num_heads, d_head = x.shape
    if d_head % 2:
        raise ValueError("the columns do not make pairs")
    if positions.numel() != n_tokens:
        raise ValueError("positions and tokens differ in number")
    pairs = d_head // 2
    exponent = 2 * torch.arange(pairs, device=x.device).double() / d_head
    angle = positions.double().reshape(-1, 1, 1) / base**exponent
    wide = x.double() if x.dtype == torch.float64 else x.float()
    c, s = angle.cos().to(wide.dtype), angle.sin().to(wide.dtype)
    if interleaved:
        first, second = wide[..., ::2], wide[..., 1::2]
    else:
        first, second = wide[..., :pairs], wide[..., pairs:]
    turned = torch.stack((first * c - second * s, first * s + second * c), dim=-1)
    return turned.reshape(*lead, n_tokens, num_heads, d_head).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    queries = rotate(queries, positions).movedim(-2, -3)
    keys = rotate(keys, positions).movedim(-2, -3)
    scores = queries @ keys.mT * queries.shape[-1] ** -0.5
    context = torch.softmax(scores, dim=-1) @ values.movedim(-2, -3)
    return context.movedim(-3, -2)
