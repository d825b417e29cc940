# note: every column is mixed with its partner column, found by an index tensor and a sign, in both layouts; attention is two einsums
import torch
from torch import Tensor


def _layout(d: int, interleaved: bool, device) -> tuple[Tensor, Tensor, Tensor]:
    """For each column: its pair, its partner, and whether it is the second of its pair."""
    c = torch.arange(d, device=device)
    if interleaved:
        return c // 2, c ^ 1, c % 2 == 1
    half = d // 2
    return c % half, (c + half) % d, c >= half


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, interleaved: bool = True) -> Tensor:
    d = x.size(-1)
    if d % 2 == 1:
        raise ValueError("d_head has to be even")
    if tuple(positions.shape) != (x.size(-3),):
        raise ValueError("there has to be one position for each token")
    pair, partner, second = _layout(d, interleaved, x.device)
    angle = positions.double().unsqueeze(-1) / base ** (2 * pair.double() / d)  # (n, d)
    cos, sin = torch.cos(angle), torch.where(second, 1.0, -1.0) * torch.sin(angle)
    cos, sin = (t.unsqueeze(1) for t in (cos, sin))
    y = x.double()
    return (y * cos + y.index_select(-1, partner) * sin).to(x.dtype)


def rotary_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    q, k = (rotate(t, positions) for t in (queries, keys))
    scores = torch.einsum("...qhd,...khd->...hqk", q, k) * q.size(-1) ** -0.5
    return torch.einsum("...hqk,...khv->...qhv", scores.softmax(-1), values)
