# mistake: no_rescale_of_total
import math

import torch
from torch import Tensor


def online_softmax(chunks, state=None):
    dtype = chunks[0].dtype
    work = torch.float64 if dtype == torch.float64 else torch.float32
    shape = chunks[0].shape[:-1]
    if state is None:
        m = torch.full(shape, -math.inf, dtype=work, device=chunks[0].device)
        s = torch.zeros(shape, dtype=work, device=chunks[0].device)
    else:
        m, s = state[0].detach().to(work), state[1].to(work)
    for chunk in chunks:
        c = chunk.to(work)
        m = torch.maximum(m, c.detach().amax(-1))
        shift = torch.nan_to_num(m, neginf=0.0)
        s = s + torch.exp(c - shift[..., None]).sum(-1)
    return m.to(dtype), s.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile")
    work = torch.float64 if Q.dtype == torch.float64 else torch.float32
    q = Q.to(work) / math.sqrt(Q.shape[-1])
    rows = torch.arange(Q.shape[-2], device=Q.device)[:, None]
    m = s = out = None
    for i in range(0, K.shape[-2], tile):
        scores = q @ K[..., i : i + tile, :].to(work).mT
        if causal:
            cols = torch.arange(i, i + scores.shape[-1], device=Q.device)
            scores = scores.masked_fill(cols > rows, -math.inf)
        top = scores.detach().amax(-1, keepdim=True)
        new = top if m is None else torch.maximum(m, top)
        p = torch.exp(scores - new)
        pv = p @ V[..., i : i + tile, :].to(work)
        if m is None:
            s, out = p.sum(-1, keepdim=True), pv
        else:
            f = torch.exp(m - new)
            s, out = f * s + p.sum(-1, keepdim=True), f * out + pv
        m = new
    return (out / s).to(Q.dtype)
