# mistake: not in the catalogue: Each tile gets a complete softmax of its own, and the tile outputs are mixed with the weights exp(maximum of the tile) instead of its whole total.
import math

import torch
from torch import Tensor

INF = math.inf


def _safe(m: Tensor) -> Tensor:
    return m.masked_fill(m == -INF, 0)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maximum and the total of each row of scores, which come in chunks."""
    dtype = chunks[0].dtype
    wide = torch.promote_types(dtype, torch.float32)
    m = t = None
    if state is not None:
        m, t = (part.to(wide) for part in state)
    for chunk in chunks:
        c = chunk.to(wide)
        top = c.amax(-1)
        if m is None:
            m, t = torch.full_like(top, -INF), torch.zeros_like(top)
        new = torch.maximum(m, top)
        t = t * torch.exp(m - _safe(new)) + torch.exp(c - _safe(new)[..., None]).sum(-1)
        m = new
    return m.to(dtype), t.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Return softmax(Q Kᵀ / sqrt(d_key)) V, computed for `tile` keys at a time."""
    if tile < 1:
        raise ValueError("tile")
    wide = torch.promote_types(Q.dtype, torch.float32)
    n, k = Q.shape[-2], K.shape[-2]
    q = Q.to(wide) / math.sqrt(Q.shape[-1])
    here = torch.arange(n, device=Q.device)[:, None]
    m = torch.full(Q.shape[:-1], -INF, dtype=wide, device=Q.device)
    share = torch.zeros_like(m)
    out = torch.zeros(*Q.shape[:-1], V.shape[-1], dtype=wide, device=Q.device)
    for a in range(0, min(n, k) if causal else k, tile):
        b = min(a + tile, k)
        s = q @ K[..., a:b, :].to(wide).mT
        if causal:
            s = s.masked_fill(torch.arange(a, b, device=Q.device) > here, -INF)
        top = s.amax(-1)
        e = torch.exp(s - _safe(top)[..., None])
        sum_e = e.sum(-1)
        part = e @ V[..., a:b, :].to(wide) / (sum_e + (sum_e == 0))[..., None]
        new = torch.maximum(m, top)
        old_factor = torch.exp(m - _safe(new))
        new_factor = torch.exp(top - _safe(new))
        share = share * old_factor + new_factor
        out = out * old_factor[..., None] + part * new_factor[..., None]
        m = new
    return (out / share[..., None]).to(Q.dtype)
