# right: functools.reduce over running states in float32 or float64 with detached maxima
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor


class _Running(NamedTuple):
    maximum: Tensor  # without a graph
    total: Tensor
    mixed: Tensor | None = None


def _exact(t: Tensor) -> Tensor:
    return t if t.dtype in (torch.float32, torch.float64) else t.float()


def _absorb(old: _Running, scores: Tensor, values: Tensor | None = None) -> _Running:
    new = torch.maximum(old.maximum, scores.detach().amax(dim=-1))
    base = torch.where(new == -torch.inf, torch.zeros_like(new), new)
    factor = torch.exp(old.maximum - base)
    e = torch.exp(scores - base.unsqueeze(-1))
    total = old.total * factor + e.sum(dim=-1)
    if values is None:
        return _Running(new, total)
    return _Running(new, total, old.mixed * factor.unsqueeze(-1) + e @ values)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    if state is None:
        blank = _exact(chunks[0].detach()).new_zeros(chunks[0].shape[:-1])
        start = _Running(blank - torch.inf, blank)
    else:
        start = _Running(_exact(state[0].detach()), _exact(state[1]))
    end = reduce(lambda running, chunk: _absorb(running, _exact(chunk)), chunks, start)
    return end.maximum.to(dtype), end.total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(f"a tile needs at least one key, not {tile}")
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    if causal:
        n_keys = min(n_keys, n_queries)
    q = _exact(Q) / Q.shape[-1] ** 0.5
    rows = torch.arange(n_queries, device=Q.device).unsqueeze(-1)
    blank = q.detach().new_zeros(q.shape[:-1])
    running = _Running(blank - torch.inf, blank, q.detach().new_zeros(*q.shape[:-1], V.shape[-1]))
    for start in range(0, n_keys, tile):
        stop = min(start + tile, n_keys)
        scores = q @ _exact(K[..., start:stop, :]).mT
        if causal:
            columns = torch.arange(start, stop, device=Q.device)
            scores = scores.masked_fill(columns > rows, -torch.inf)
        running = _absorb(running, scores, _exact(V[..., start:stop, :]))
    return (running.mixed / running.total.unsqueeze(-1)).to(Q.dtype)
