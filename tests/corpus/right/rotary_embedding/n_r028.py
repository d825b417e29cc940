# style: unusual
import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    """Each pair is a complex number, and a rotation is a product with exp(i angle)."""
    n, _, d = x.shape[-3:]
    if d % 2 == 1:
        raise ValueError(f"d_head = {d} is odd")
    if positions.shape != (n,):
        raise ValueError(f"{n} tokens need {n} positions")
    wide = x if x.dtype == torch.float64 else x.float()
    if interleaved:
        pairs = wide.unflatten(-1, (d // 2, 2))
    else:
        pairs = torch.stack(wide.chunk(2, dim=-1), dim=-1)
    z = torch.view_as_complex(pairs.contiguous())

    exponent = torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d
    angle = torch.outer(positions.double(), base**-exponent)
    turn = torch.polar(torch.ones_like(angle), angle).to(z.dtype)
    turned = torch.view_as_real(z * turn[:, None, :])

    if interleaved:
        out = turned.flatten(-2)
    else:
        out = torch.cat(turned.unbind(dim=-1), dim=-1)
    return out.to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q = rotate(queries, positions)
    k = rotate(keys, positions)
    scores = torch.einsum("...qhd,...khd->...hqk", q, k) / q.shape[-1] ** 0.5
    return torch.einsum("...hqk,...khd->...qhd", scores.softmax(dim=-1), values)
