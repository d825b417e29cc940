"""Attention as online softmax with one more column: the values beside a column of ones."""

from functools import reduce

import torch


def step(state, chunk):
    (m, acc), (s, v) = state, chunk
    n = torch.maximum(m, s.amax(-1, True))
    z = n.where(n > -torch.inf, 0)
    return n, acc * (m - z).exp() + (s - z).exp() @ v


def online_softmax(chunks, state=None):
    m, l = state or (chunks[0].new_full((), -torch.inf), chunks[0].new_zeros(()))
    first = m[..., None, None], l[..., None, None]
    pairs = ((c[..., None, :], torch.ones_like(c[..., None, :]).mT) for c in chunks)
    return tuple(x[..., 0, 0] for x in reduce(step, pairs, first))


def tiled_attention(Q, K, V, tile, causal=False):
    if tile < 1:
        raise ValueError(tile)
    tiles = range(0, K.shape[-2], tile)
    i = torch.arange(Q.shape[-2])[:, None]

    def pair(j):
        k, v = K[..., j : j + tile, :], V[..., j : j + tile, :]
        s = Q @ k.mT / k.shape[-1] ** 0.5
        s = s.where(i >= j + torch.arange(k.shape[-2]), -torch.inf) if causal else s
        return s, torch.cat([v, torch.ones_like(v[..., :1])], -1)

    acc = reduce(step, map(pair, tiles), (Q.new_full((), -torch.inf), Q.new_zeros(())))[1]
    return acc[..., :-1] / acc[..., -1:]
