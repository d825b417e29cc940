# right: the twin of one with a mistake, tilemaxonly
# seen: tile-ai/tilelang pull 1148: the maximum of each chunk replaces the running one instead of being compared with it, so the maximum may fall and the factor overflows.
import math

import torch
from torch import Tensor


def _higher(m: Tensor, scores: Tensor) -> Tensor:
    return torch.maximum(m, scores.detach().amax(-1))


def _finite(m: Tensor) -> Tensor:
    return torch.where(m == -math.inf, 0.0, m)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    out_dtype = chunks[0].dtype
    work = torch.promote_types(out_dtype, torch.float32)
    lead = chunks[0].shape[:-1]
    if state is None:
        state = (chunks[0].new_full(lead, -math.inf), chunks[0].new_zeros(lead))
    m, total = state[0].detach().to(work), state[1].to(work)
    for scores in chunks:
        scores = scores.to(work)
        m_new = _higher(m, scores)
        base = _finite(m_new)
        total = total * (m - base).exp() + (scores - base[..., None]).exp().sum(-1)
        m = m_new
    return m.to(out_dtype), total.to(out_dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be positive")
    work = torch.promote_types(Q.dtype, torch.float32)
    n_q, n_k = Q.shape[-2], K.shape[-2]
    end = min(n_q, n_k) if causal else n_k  # no query sees the keys after it
    query = Q.to(work)
    m = torch.full(Q.shape[:-1], -math.inf, dtype=work, device=Q.device)
    total = torch.zeros(Q.shape[:-1], dtype=work, device=Q.device)
    acc = torch.zeros(Q.shape[:-1] + V.shape[-1:], dtype=work, device=Q.device)
    for lo in range(0, end, tile):
        hi = min(lo + tile, end)
        k, v = K[..., lo:hi, :].to(work), V[..., lo:hi, :].to(work)
        scores = torch.einsum("...qd,...kd->...qk", query, k) / math.sqrt(Q.shape[-1])
        if causal:
            hidden = torch.ones(n_q, hi - lo, dtype=torch.bool, device=Q.device).triu(1 - lo)
            scores = scores.masked_fill(hidden, -math.inf)
        m_new = _higher(m, scores)
        base = _finite(m_new)
        weights = (scores - base[..., None]).exp()
        shrink = (m - base).exp()
        total = total * shrink + weights.sum(-1)
        acc = acc * shrink[..., None] + torch.einsum("...qk,...kv->...qv", weights, v)
        m = m_new
    return (acc / total[..., None]).to(Q.dtype)
