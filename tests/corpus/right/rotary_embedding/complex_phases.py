# right: pairs are complex numbers, multiplied by phases of length 1 that are computed in float64

import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    n_tokens, d_head = x.shape[-3], x.shape[-1]
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    if positions.shape != (n_tokens,):
        raise ValueError(f"positions of shape {tuple(positions.shape)} for {n_tokens} tokens")
    exponents = torch.arange(0, d_head, 2, dtype=torch.float64, device=x.device) / d_head
    angles = positions.to(x.device, torch.float64)[:, None, None] / base**exponents
    phases = torch.polar(torch.ones_like(angles), angles)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if interleaved:
        real, imag = wide[..., 0::2], wide[..., 1::2]
    else:
        real, imag = wide.tensor_split(2, dim=-1)
    points = torch.complex(real.contiguous(), imag.contiguous())
    turned = points * phases.to(points.dtype)
    if interleaved:
        columns = torch.view_as_real(turned).flatten(-2)
    else:
        columns = torch.cat((turned.real, turned.imag), dim=-1)
    return columns.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions)
    k = rotate(keys, positions)
    # the keys are the first axis after the heads here: (..., heads, keys, queries)
    scores = torch.einsum("...khd,...qhd->...hkq", k, q) / q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-2)
    return torch.einsum("...hkq,...khv->...qhv", weights, values)
