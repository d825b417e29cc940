# mistake: causal_from_the_end
# with another number of keys than queries, the causal mask is aligned at the last key (query i sees the keys up to i + n_keys - n_queries) and not at the first
import math

import torch
from torch import Tensor


def online_softmax(chunks: list[Tensor], state=None) -> tuple[Tensor, Tensor]:
    it = iter(chunks)
    if state is None:
        first = next(it)
        m = first.detach().amax(-1)
        total = torch.exp(first - m.masked_fill(m.isneginf(), 0)[..., None]).sum(-1)
    else:
        m, total = state
        m = m.detach()
    for c in it:
        new = torch.maximum(m, c.detach().amax(-1))
        ref = new.masked_fill(new.isneginf(), 0)
        total = total * torch.exp(m - ref) + torch.exp(c - ref[..., None]).sum(-1)
        m = new
    return m, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be >= 1")
    n_q, n_k = Q.shape[-2], K.shape[-2]
    last_visible = torch.arange(n_q, device=Q.device) + (n_k - n_q)
    m = total = acc = None
    for start in range(0, n_k, tile):
        k = K[..., start : start + tile, :]
        v = V[..., start : start + tile, :]
        s = Q @ k.mT / math.sqrt(Q.shape[-1])
        if causal:
            j = torch.arange(start, start + k.shape[-2], device=Q.device)
            s = s.masked_fill(j[None, :] > last_visible[:, None], -math.inf)
        top = s.detach().amax(-1, keepdim=True)
        new = top if m is None else torch.maximum(m, top)
        ref = new.masked_fill(new.isneginf(), 0)
        p = torch.exp(s - ref)
        if m is None:
            total, acc = p.sum(-1, keepdim=True), p @ v
        else:
            c = torch.exp(m - ref)
            total, acc = total * c + p.sum(-1, keepdim=True), acc * c + p @ v
        m = new
    return acc / total
