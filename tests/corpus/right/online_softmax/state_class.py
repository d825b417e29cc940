# right: a class holds the state, einsum and cummax, tiles by index
import torch


class Running:
    """The maximum and the sum, each (..., 1)."""

    def __init__(self, m=None, l=None):
        self.m, self.l = m, l

    def see(self, s):
        """Take scores; return their exponentials and the factor for what was before."""
        top = s.cummax(-1).values[..., -1:]
        if self.m is not None:
            top = torch.fmax(top, self.m)
        base = torch.where(top > -torch.inf, top, torch.zeros_like(top))
        e = torch.exp(s - base)
        factor = torch.zeros_like(top) if self.m is None else torch.exp(self.m - base)
        before = 0 if self.l is None else factor * self.l
        self.m, self.l = top, before + e.sum(-1, keepdim=True)
        return e, factor


def online_softmax(chunks, state=None):
    running = Running(*(x[..., None] for x in state or ()))
    for chunk in chunks:
        running.see(chunk)
    return running.m[..., 0], running.l[..., 0]


def tiled_attention(Q, K, V, tile, causal=False):
    if tile < 1:
        raise ValueError(f"tile = {tile}")
    running, out = Running(), None
    last = torch.arange(Q.shape[-2])[:, None]
    for block in torch.arange(K.shape[-2]).split(tile):
        s = torch.einsum("...id,...jd->...ij", Q, K[..., block, :]) * K.shape[-1] ** -0.5
        if causal:
            s = s.masked_fill(block > last, -torch.inf)
        e, factor = running.see(s)
        new = torch.einsum("...ij,...jv->...iv", e, V[..., block, :])
        out = new if out is None else out * factor + new
    return out / running.l
