# right: pairs are complex numbers, turned by a product with a phase
import torch
from torch import Tensor


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    n, d = x.size(-3), x.size(-1)
    if d % 2 == 1 or list(positions.shape) != [n]:
        raise ValueError("d_head is odd, or the positions do not fit the tokens")
    speed = torch.pow(base, -torch.arange(d // 2, device=x.device).double() * 2 / d)
    angle = torch.outer(positions.to(x.device).double(), speed)[:, None, :]
    turn = torch.polar(torch.ones_like(angle), angle)
    wide = x.double()
    if interleaved:
        pairs = wide.unflatten(-1, (d // 2, 2))
    else:
        pairs = wide.unflatten(-1, (2, d // 2)).mT
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    if not interleaved:
        turned = turned.mT
    return turned.flatten(-2).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = rotate(queries, positions), rotate(keys, positions)
    scores = torch.einsum("...qhd,...khd->...hqk", q, k) / queries.size(-1) ** 0.5
    return torch.einsum("...hqk,...khv->...qhv", scores.softmax(-1), values)
