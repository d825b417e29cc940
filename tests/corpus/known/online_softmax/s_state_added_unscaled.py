# mistake: state_not_rescaled
import math

import torch
from torch import Tensor


def _finite(m: Tensor) -> Tensor:
    return torch.where(m == -torch.inf, torch.zeros_like(m), m)


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    first = chunks[0]
    if state is None:
        maximum = torch.full_like(first[..., 0], -torch.inf)
        before = torch.zeros_like(first[..., 0])
    else:
        maximum, before = state
    total = torch.zeros_like(first[..., 0])
    for chunk in chunks:
        new = torch.maximum(maximum, chunk.amax(-1))
        safe = _finite(new)
        total = total * torch.exp(maximum - safe) + torch.exp(chunk - safe[..., None]).sum(-1)
        maximum = new
    return maximum, total + before


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be at least 1")
    n_q, n_k = Q.shape[-2], K.shape[-2]
    Q = Q / math.sqrt(Q.shape[-1])
    rows = torch.arange(n_q, device=Q.device)[:, None]
    m = s = acc = None
    for start in range(0, n_k, tile):
        k, v = K[..., start : start + tile, :], V[..., start : start + tile, :]
        scores = Q @ k.mT
        if causal:
            cols = torch.arange(start, start + k.shape[-2], device=Q.device)
            scores = scores.masked_fill(cols > rows, -torch.inf)
        best = scores.amax(-1, keepdim=True)
        new = best if m is None else torch.maximum(m, best)
        safe = _finite(new)
        e = torch.exp(scores - safe)
        if m is None:
            s, acc = e.sum(-1, keepdim=True), e @ v
        else:
            f = torch.exp(m - safe)
            s, acc = s * f + e.sum(-1, keepdim=True), acc * f + e @ v
        m = new
    return acc / s
