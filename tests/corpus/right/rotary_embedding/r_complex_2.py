import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    *_, n_tokens, _, d_head = x.shape
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    if positions.shape != (n_tokens,):
        raise ValueError(f"{n_tokens} tokens, but positions {tuple(positions.shape)}")
    exponent = torch.arange(0, d_head, 2, dtype=torch.float64, device=x.device) / d_head
    angles = torch.outer(positions.to(x.device, torch.float64), base**-exponent)
    wide = torch.promote_types(x.dtype, torch.float32)
    turn = torch.polar(torch.ones_like(angles), angles).unsqueeze(1)
    turn = turn.to(torch.complex128 if wide == torch.float64 else torch.complex64)

    y = x.to(wide)
    pairs = y.unflatten(-1, (-1, 2)) if interleaved else y.unflatten(-1, (2, -1)).transpose(-1, -2)
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    if not interleaved:
        turned = turned.transpose(-1, -2)
    return turned.flatten(-2).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = rotate(queries, positions), rotate(keys, positions)
    scores = torch.einsum("...qhd,...khd->...hqk", q, k) / q.shape[-1] ** 0.5
    return torch.einsum("...hqk,...khv->...qhv", scores.softmax(-1), values)
