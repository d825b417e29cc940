# right: functional, queries in tiles of the same size too, tiles of later keys are skipped; a running normalised output
import math

import torch

INF = float("inf")


def step(maximum, total, scores):
    """One chunk (..., n) more: the new maximum, the new total, factor of the old sums, powers."""
    with torch.no_grad():
        larger = torch.maximum(maximum, scores.max(dim=-1).values)
        base = larger.clamp(min=torch.finfo(larger.dtype).min)
        factor = torch.exp(maximum - base)
    powers = torch.exp(scores - base.unsqueeze(-1))
    return larger, total * factor + powers.sum(-1), factor, powers


def online_softmax(chunks, state=None):
    shape = chunks[0].shape[:-1]
    maximum, total = state or (chunks[0].new_full(shape, -INF), chunks[0].new_zeros(shape))
    maximum = maximum.detach()
    for chunk in chunks:
        maximum, total, _, _ = step(maximum, total, chunk)
    return maximum, total


def rows_of_output(queries, keys, values, first):
    """Attention of some queries, the first of which is number `first` (None: not causal)."""
    maximum = torch.full(queries.shape[:-1], -INF, dtype=queries.dtype, device=queries.device)
    total = torch.zeros_like(maximum)
    output = 0
    start = 0
    for some_keys, some_values in zip(keys, values):
        stop = start + some_keys.shape[-2]
        if first is not None and start >= first + queries.shape[-2]:
            break
        scores = torch.einsum("...qd,...kd->...qk", queries, some_keys)
        if first is not None and stop > first + 1:
            q = torch.arange(first, first + queries.shape[-2], device=queries.device)
            k = torch.arange(start, stop, device=queries.device)
            scores = scores.masked_fill(q.unsqueeze(1) < k, -INF)
        maximum, larger_total, factor, powers = step(maximum, total, scores)
        scale = larger_total.clamp(min=torch.finfo(total.dtype).tiny).unsqueeze(-1)
        output = output * ((total * factor).unsqueeze(-1) / scale) + (powers / scale) @ some_values
        total = larger_total
        start = stop
    return output


def tiled_attention(Q, K, V, tile, causal=False):
    if not tile >= 1:
        raise ValueError("tile must be at least 1")
    keys, values = K.split(tile, -2), V.split(tile, -2)
    scaled = Q * (1 / math.sqrt(Q.shape[-1]))
    size = Q.shape[-2] if len(keys) == 1 else tile
    first = range(0, Q.shape[-2], size)
    parts = [
        rows_of_output(part, keys, values, i if causal else None)
        for i, part in zip(first, scaled.split(size, -2))
    ]
    return torch.cat(parts, -2)
