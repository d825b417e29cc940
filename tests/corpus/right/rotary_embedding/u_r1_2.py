# right: complex numbers, one multiplication by torch.polar, angles in float64, einsum for attention
import torch
from torch import Tensor


def _exact(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    n_tokens, d_head = x.shape[-3], x.shape[-1]
    if d_head % 2 == 1:
        raise ValueError(f"d_head must be even, not {d_head}")
    if positions.shape != (n_tokens,):
        raise ValueError(f"expected {n_tokens} positions, got {tuple(positions.shape)}")
    exponent = torch.arange(0, d_head, 2, dtype=torch.float64, device=x.device) / d_head
    angle = positions.to(device=x.device, dtype=torch.float64)[:, None] / float(base) ** exponent
    wide = _exact(x)
    turn = torch.polar(torch.ones_like(angle), angle).unsqueeze(1)
    turn = turn.to(torch.complex128 if wide.dtype == torch.float64 else torch.complex64)
    pairs = wide.unflatten(-1, (-1, 2)) if interleaved else wide.unflatten(-1, (2, -1)).mT
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    return (turned if interleaved else turned.mT).flatten(-2).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = (rotate(_exact(t), positions) for t in (queries, keys))
    scores = torch.einsum("...qhd,...khd->...hqk", q, k) / queries.shape[-1] ** 0.5
    mixed = torch.einsum("...hqk,...khv->...qhv", scores.softmax(-1), _exact(values))
    return mixed.to(values.dtype)
