# note: each chunk becomes its own (maximum, total) pair, and functools.reduce merges pairs with one associative function; attention is a merge of partial results, too, in float32 or float64
import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor


class Partial(NamedTuple):
    m: Tensor
    total: Tensor


def _finite(m: Tensor) -> Tensor:
    return torch.where(m == -math.inf, torch.zeros_like(m), m)


def _of_chunk(chunk: Tensor) -> Partial:
    m = chunk.detach().amax(-1)
    return Partial(m, torch.exp(chunk - _finite(m).unsqueeze(-1)).sum(-1))


def _merge(a: Partial, b: Partial) -> Partial:
    m = torch.maximum(a.m, b.m)
    base = _finite(m)
    return Partial(m, a.total * torch.exp(a.m - base) + b.total * torch.exp(b.m - base))


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    wide = torch.promote_types(dtype, torch.float32)
    parts = (_of_chunk(c.to(wide)) for c in chunks)
    if state is None:
        result = functools.reduce(_merge, parts)
    else:
        result = functools.reduce(_merge, parts, Partial(state[0].detach().to(wide), state[1].to(wide)))
    return result.m.to(dtype), result.total.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError(f"a tile has at least one key, not {tile}")
    dtype = Q.dtype
    wide = torch.promote_types(dtype, torch.float32)
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    q = Q.to(wide) / math.sqrt(Q.shape[-1])
    rows = torch.arange(n_queries, device=Q.device).unsqueeze(-1)

    def part(start: int):
        stop = min(start + tile, n_keys)
        s = q @ K[..., start:stop, :].to(wide).mT
        if causal:
            s = s.masked_fill(torch.arange(start, stop, device=Q.device) > rows, -math.inf)
        m = s.detach().amax(-1, keepdim=True)
        e = torch.exp(s - _finite(m))
        return m, e.sum(-1, keepdim=True), e @ V[..., start:stop, :].to(wide)

    def merge(a, b):
        m = torch.maximum(a[0], b[0])
        base = _finite(m)
        fa, fb = torch.exp(a[0] - base), torch.exp(b[0] - base)
        return m, a[1] * fa + b[1] * fb, a[2] * fa + b[2] * fb

    _, total, acc = functools.reduce(merge, map(part, range(0, n_keys, tile)))
    return (acc / total).to(dtype)
