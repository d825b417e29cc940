# mistake: last_tile_lost
import math

import torch


def online_softmax(chunks, state=None):
    if state is None:
        shape = chunks[0].shape[:-1]
        state = chunks[0].new_full(shape, float("-inf")), chunks[0].new_zeros(shape)
    m, l = state
    for c in chunks:
        m_new = torch.maximum(m, c.max(dim=-1).values)
        safe = torch.where(m_new == float("-inf"), torch.zeros_like(m_new), m_new)
        l = l * torch.exp(m - safe) + torch.exp(c - safe[..., None]).sum(-1)
        m = m_new
    return m, l


def tiled_attention(Q, K, V, tile, causal=False):
    if tile < 1:
        raise ValueError(tile)
    *batch, n_q, d = Q.shape
    n_k = K.shape[-2]
    tile = min(tile, n_k)
    out = torch.zeros(*batch, n_q, V.shape[-1], dtype=Q.dtype)
    m = torch.full((*batch, n_q, 1), -math.inf, dtype=Q.dtype)
    l = torch.zeros_like(m)
    for i in range(n_k // tile):  # number of tiles
        lo, hi = i * tile, (i + 1) * tile
        s = Q @ K[..., lo:hi, :].transpose(-1, -2) / math.sqrt(d)
        if causal:
            hide = torch.arange(lo, hi)[None, :] > torch.arange(n_q)[:, None]
            s = s.masked_fill(hide, -math.inf)
        m_new = torch.maximum(m, s.max(-1, keepdim=True)[0])
        p = (s - m_new).exp()
        a = (m - m_new).exp()
        l, out, m = a * l + p.sum(-1, keepdim=True), a * out + p @ V[..., lo:hi, :], m_new
    return out / l
