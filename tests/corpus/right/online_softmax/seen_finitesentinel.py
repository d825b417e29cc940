# right: the twin of one with a mistake, finitesentinel
# seen: flashinfer issue 4267: the running maximum starts at a finite number, so rows whose scores are all far below it keep that maximum and get the total 0.
import math

import torch
from torch import Tensor


START = -math.inf


def _dtype(t: Tensor) -> torch.dtype:
    return torch.float64 if t.dtype == torch.float64 else torch.float32


def _shifted_exp(x: Tensor, m: Tensor) -> Tensor:
    return (x - torch.where(torch.isinf(m), torch.zeros_like(m), m)).exp()


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    first = chunks[0]
    wide = _dtype(first)
    m = torch.full(first.shape[:-1], START, dtype=wide, device=first.device)
    s = torch.zeros(first.shape[:-1], dtype=wide, device=first.device)
    if state is not None:
        m, s = state[0].detach().to(wide), state[1].to(wide)
    for chunk in chunks:
        c = chunk.to(wide)
        top = torch.maximum(m, c.detach().max(dim=-1).values)
        s = s * _shifted_exp(m, top) + _shifted_exp(c, top[..., None]).sum(-1)
        m = top
    return m.to(first.dtype), s.to(first.dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(f"tile = {tile}")
    wide = _dtype(Q)
    m = torch.full((*Q.shape[:-1], 1), START, dtype=wide, device=Q.device)
    s = torch.zeros_like(m)
    o = torch.zeros(*Q.shape[:-1], V.shape[-1], dtype=wide, device=Q.device)
    rows = torch.arange(Q.shape[-2], device=Q.device).unsqueeze(-1)
    first = 0
    for k, v in zip(K.split(tile, dim=-2), V.split(tile, dim=-2)):
        scores = (Q.to(wide) @ k.to(wide).mT) * Q.shape[-1] ** -0.5
        if causal:
            columns = torch.arange(first, first + k.shape[-2], device=Q.device)
            scores = torch.where(columns <= rows, scores, -math.inf)
        first += k.shape[-2]
        top = torch.maximum(m, scores.detach().amax(-1, keepdim=True))
        p, old = _shifted_exp(scores, top), _shifted_exp(m, top)
        s = old * s + p.sum(-1, keepdim=True)
        o = old * o + p @ v.to(wide)
        m = top
    return (o / s).to(Q.dtype)
