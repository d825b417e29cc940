# note: the values get an extra column of ones, whose weighted sum is the total; K and V are cut by Tensor.split
import torch
from torch import Tensor

INF = float("inf")


def _shift(m: Tensor) -> Tensor:
    """What is subtracted: the maximum, or 0 where nothing was seen yet."""
    return m.masked_fill(m.eq(-INF), 0.0)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    head = chunks[0][..., 0]
    if state is not None:
        m, t = state
        m = m.detach()
    else:
        m, t = torch.full_like(head, -INF), torch.zeros_like(head)
    for c in chunks:
        m_next = torch.max(m, c.detach().max(dim=-1).values)
        shift = _shift(m_next)
        t = t * (m - shift).exp() + (c - shift[..., None]).exp().sum(dim=-1)
        m = m_next
    return m, t


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be at least 1")
    if Q.dtype == torch.bfloat16:
        return tiled_attention(Q.float(), K.float(), V.float(), tile, causal).to(Q.dtype)
    V1 = torch.nn.functional.pad(V, (0, 1), value=1.0)
    who = torch.arange(Q.size(-2), device=Q.device)
    acc, m = 0.0, None
    pieces = zip(K.split(tile, dim=-2), V1.split(tile, dim=-2))
    for number, (k, v) in enumerate(pieces):
        s = torch.einsum("...qd,...kd->...qk", Q, k) / Q.size(-1) ** 0.5
        if causal:
            which = torch.arange(k.size(-2), device=Q.device) + number * tile
            s = torch.where(which[None, :] <= who[:, None], s, -INF)
        top = s.detach().amax(dim=-1, keepdim=True)
        new = top if m is None else torch.maximum(m, top)
        shift = _shift(new)
        if m is not None:
            acc = acc * torch.exp(m - shift)
        acc = acc + torch.exp(s - shift) @ v
        m = new
    return acc[..., :-1] / acc[..., -1:]
