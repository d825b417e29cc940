# right: each column adds its partner column, found by an index, times a signed sine; angles in float32

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d_head = x.shape[-1]
    if d_head % 2 != 0 or positions.ndim != 1 or positions.shape[0] != x.shape[-3]:
        raise ValueError("d_head must be even, with one position for each token")
    column = torch.arange(d_head, device=x.device)
    if interleaved:
        pair, is_second = column // 2, column % 2
        partner = column + 1 - 2 * is_second
    else:
        half = d_head // 2
        pair, is_second = column % half, column // half
        partner = (column + half) % d_head
    speed = base ** (pair.float() * (-2.0 / d_head))
    angles = (positions.float().unsqueeze(-1) * speed).unsqueeze(-2)
    signed_sin = angles.sin() * (2 * is_second - 1)
    wide = x if x.dtype == torch.float64 else x.float()
    turned = wide * angles.cos() + wide.index_select(-1, partner) * signed_sin
    return turned.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    *lead, n_tokens, num_heads, d_head = queries.shape
    d_value = values.shape[-1]

    def fold(t: Tensor) -> Tensor:
        return t.transpose(-3, -2).reshape(-1, n_tokens, t.shape[-1])

    scores = torch.bmm(fold(rotate(queries, positions)), fold(rotate(keys, positions)).mT)
    scores = scores / d_head**0.5
    weights = torch.softmax(scores, dim=2)
    return torch.bmm(weights, fold(values)).reshape(*lead, num_heads, n_tokens, d_value).transpose(-3, -2)
