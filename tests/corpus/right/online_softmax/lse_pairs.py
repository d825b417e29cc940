# right: log-sum-exp of each tile, merged pairwise with logaddexp
import math

import torch


def online_softmax(chunks, state=None):
    """A state is exactly (max, exp(lse - max)), so log space needs no own rescaling."""
    best = lse = None
    if state is not None:
        best, total = state
        lse = torch.where(total > 0, best + total.clamp(min=1e-300).log(), best)
    for chunk in chunks:
        top = chunk.amax(-1)
        finite = torch.where(top == -math.inf, 0.0, top)
        part = (chunk - finite[..., None]).exp().sum(-1)
        piece = torch.where(part > 0, finite + part.clamp(min=1e-300).log(), -math.inf)
        best = top if best is None else torch.maximum(best, top)
        lse = piece if lse is None else torch.logaddexp(lse, piece)
    base = torch.where(best == -math.inf, 0.0, best)
    return best, (lse - base).exp().to(chunks[0].dtype)


def tiled_attention(Q, K, V, tile, causal=False):
    if tile < 1:
        raise ValueError("tile")
    scale = 1 / math.sqrt(K.shape[-1])
    out = lse = None
    who = torch.arange(Q.shape[-2]).unsqueeze(1)
    for start in range(0, K.shape[-2], tile):
        k = K.narrow(-2, start, min(tile, K.shape[-2] - start))
        v = V.narrow(-2, start, k.shape[-2])
        s = torch.matmul(Q, k.mT) * scale
        if causal:
            s = s.masked_fill(torch.arange(start, start + k.shape[-2]) > who, -math.inf)
        m, part = online_softmax([s])
        base = torch.where(m == -math.inf, 0.0, m)[..., None]
        safe = torch.where(part == 0, 1.0, part)[..., None]
        mine = (s - base).exp() / safe @ v
        own = torch.where(part[..., None] == 0, -math.inf, base + safe.log())
        if out is None:
            out, lse = mine, own
            continue
        both = torch.logaddexp(lse, own)
        out = out * (lse - both).exp() + mine * (own - both).exp()
        lse = both
    return out.to(Q.dtype)
