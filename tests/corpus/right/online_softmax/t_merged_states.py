# right: states of (maximum, total) are merged pairwise by one function; attention keeps the total as an extra column of the values
import torch
from torch import Tensor

LOW = float("-inf")


def _merge(m1: Tensor, t1: Tensor, m2: Tensor, t2: Tensor) -> tuple[Tensor, Tensor]:
    """Sums t1, t2 relative to m1, m2 become one sum; t may have one axis more."""
    m = torch.maximum(m1, m2)
    safe = torch.where(m == LOW, torch.zeros_like(m), m)
    f1, f2 = torch.exp(m1 - safe), torch.exp(m2 - safe)
    if t1.dim() > m.dim():
        f1, f2 = f1[..., None], f2[..., None]
    return m, t1 * f1 + t2 * f2


def _part(scores: Tensor) -> tuple[Tensor, Tensor]:
    m = scores.detach().max(dim=-1).values
    safe = torch.where(m == LOW, torch.zeros_like(m), m)
    return m, torch.exp(scores - safe[..., None])


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    up = torch.promote_types(dtype, torch.float32)
    if state is not None:
        state = (state[0].detach().to(up), state[1].to(up))
    for chunk in chunks:
        m, e = _part(chunk.to(up))
        state = (m, e.sum(-1)) if state is None else _merge(*state, m, e.sum(-1))
    return state[0].to(dtype), state[1].to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if not tile >= 1:
        raise ValueError("tile")
    dtype, up = Q.dtype, torch.promote_types(Q.dtype, torch.float32)
    q = Q.to(up) * Q.size(-1) ** -0.5
    m = t = None
    first = 0
    for k, v in zip(K.split(tile, dim=-2), V.split(tile, dim=-2)):
        s = q @ k.to(up).mT
        if causal:
            late = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1 - first)
            s = torch.where(late, torch.full((), LOW, dtype=up, device=s.device), s)
        first += k.size(-2)
        one = torch.ones(*v.shape[:-1], 1, dtype=up, device=v.device)
        mk, e = _part(s)
        tk = e @ torch.cat((v.to(up), one), dim=-1)
        m, t = (mk, tk) if m is None else _merge(m, t, mk, tk)
    return (t[..., :-1] / t[..., -1:]).to(dtype)
