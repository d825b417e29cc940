# mistake: causal_within_tile

import torch
from torch import Tensor

NEG = float("-inf")


def _join(m: Tensor, s: Tensor, chunk: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """New maximum and sum, the factor for old sums, and the exponentials of the chunk."""
    top = torch.maximum(m, chunk.detach().amax(dim=-1))
    shift = torch.where(top == NEG, torch.zeros_like(top), top)
    factor = torch.exp(m - shift)
    e = torch.exp(chunk - shift.unsqueeze(-1))
    return top, s * factor + e.sum(-1), factor, e


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    dtype = chunks[0].dtype
    work = torch.float64 if dtype == torch.float64 else torch.float32
    if state is None:
        m = chunks[0].new_full(chunks[0].shape[:-1], NEG, dtype=work)
        s = chunks[0].new_zeros(chunks[0].shape[:-1], dtype=work)
    else:
        m, s = (t.to(work) for t in state)
        m = m.detach()
    for c in chunks:
        m, s, _, _ = _join(m, s, c.to(work))
    return m.to(dtype), s.to(dtype)


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile <= 0:
        raise ValueError("tile")
    dtype = Q.dtype
    work = torch.float64 if dtype == torch.float64 else torch.float32
    q = Q.to(work) / Q.shape[-1] ** 0.5
    m = q.new_full(q.shape[:-1], NEG)
    s = q.new_zeros(q.shape[:-1])
    acc = q.new_zeros(*q.shape[:-1], V.shape[-1])
    for k, v in zip(K.split(tile, dim=-2), V.split(tile, dim=-2), strict=True):
        scores = q @ k.to(work).transpose(-2, -1)
        if causal:
            allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=Q.device).tril()
            scores = scores.masked_fill(~allowed, NEG)
        m, s, factor, e = _join(m, s, scores)
        acc = acc * factor.unsqueeze(-1) + e @ v.to(work)
    return (acc / s.unsqueeze(-1)).to(dtype)
