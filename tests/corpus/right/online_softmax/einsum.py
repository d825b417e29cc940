"""Online softmax and tiled attention with einsum; zeros where nothing has been seen."""

import torch
from torch import einsum


def online_softmax(chunks, state=None):
    if state is None:
        nothing = torch.zeros_like(chunks[0].detach().sum(-1))
        state = nothing - torch.inf, nothing
    m, total = state
    for s in chunks:
        top = torch.maximum(m, s.amax(-1))
        base = torch.where(top > -torch.inf, top, 0.0)
        ones = s.new_ones(s.shape[-1])
        total = total * (m - base).exp() + einsum("...j,j->...", (s - base[..., None]).exp(), ones)
        m = top
    return m, total


def tiled_attention(Q, K, V, tile, causal=False):
    if tile < 1:
        raise ValueError("tile must be positive")
    m = l = o = None
    place = torch.arange(Q.shape[-2])
    for j in range(0, K.shape[-2], tile):
        k, v = K[..., j : j + tile, :], V[..., j : j + tile, :]
        s = einsum("...id,...jd->...ij", Q, k) * Q.shape[-1] ** -0.5
        if causal:
            later = place[:, None] < j + torch.arange(k.shape[-2])
            s = s.masked_fill(later, -torch.inf)
        top = s.amax(-1) if m is None else torch.maximum(m, s.amax(-1))
        w = (s - top[..., None]).exp()
        new_l, new_o = w.sum(-1), einsum("...ij,...jv->...iv", w, v)
        if m is not None:
            f = (m - top).exp()
            new_l, new_o = new_l + f * l, new_o + einsum("...i,...iv->...iv", f, o)
        m, l, o = top, new_l, new_o
    return o / l[..., None]
