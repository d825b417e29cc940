# right: the twin of one with a mistake, paddedtail
# seen: flashinfer pull 5090 and jax issue 27224: a last tile that is not full is filled with zero keys whose scores of 0 are not masked, so they take weight from the real keys.
import math

import torch
from torch import Tensor

from torch.nn import functional as F


def _step(m: Tensor, s: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    m_next = torch.maximum(m, x.detach().amax(-1, keepdim=True))
    ref = m_next.clamp_min(torch.finfo(x.dtype).min)  # finite, also in a row of -inf
    scale = torch.exp(m - ref)
    e = torch.exp(x - ref)
    return m_next, s * scale + e.sum(-1, keepdim=True), scale, e


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    kind = chunks[0].dtype
    high = torch.promote_types(kind, torch.float32)
    if state is None:
        m = torch.full_like(chunks[0][..., :1], -math.inf, dtype=high, requires_grad=False)
        s = torch.zeros_like(m)
    else:
        m, s = state[0].detach().unsqueeze(-1).to(high), state[1].unsqueeze(-1).to(high)
    for chunk in chunks:
        m, s, _, _ = _step(m, s, chunk.to(high))
    return m.squeeze(-1).to(kind), s.squeeze(-1).to(kind)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(f"cannot cut tiles of {tile} keys")
    kind = Q.dtype
    high = torch.promote_types(kind, torch.float32)
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    tile = min(tile, n_keys)
    m = torch.full((*Q.shape[:-1], 1), -math.inf, dtype=high, device=Q.device)
    s = torch.zeros_like(m)
    o = torch.zeros((*Q.shape[:-1], V.shape[-1]), dtype=high, device=Q.device)
    row = torch.arange(n_queries, device=Q.device)[:, None]
    for start in range(0, n_keys, tile):
        missing = max(0, start + tile - n_keys)
        k = F.pad(K[..., start : start + tile, :], (0, 0, 0, missing)).to(high)
        v = F.pad(V[..., start : start + tile, :], (0, 0, 0, missing)).to(high)
        x = Q.to(high) @ k.mT / math.sqrt(Q.shape[-1])
        column = torch.arange(start, start + tile, device=Q.device)
        x = x.masked_fill(column >= n_keys, -math.inf)
        if causal:
            x = x.masked_fill(column > row, -math.inf)
        m, s, scale, e = _step(m, s, x)
        o = o * scale + e @ v
    return (o / s).to(kind)
