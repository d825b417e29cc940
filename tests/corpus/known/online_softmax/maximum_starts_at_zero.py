# mistake: starts_at_zero
# the running maximum of a fresh start is 0 instead of -inf, so rows with only negative scores report the maximum 0
import math

import torch
from torch import Tensor


def online_softmax(chunks: list[Tensor], state=None) -> tuple[Tensor, Tensor]:
    rows = chunks[0].shape[:-1]
    maximum = chunks[0].new_zeros(rows)
    total = chunks[0].new_zeros(rows)
    if state is not None:
        maximum, total = state
        maximum = maximum.detach()
    for chunk in chunks:
        larger = torch.maximum(maximum, chunk.detach().amax(dim=-1))
        total = total * torch.exp(maximum - larger)
        total = total + torch.exp(chunk - larger.unsqueeze(-1)).sum(dim=-1)
        maximum = larger
    return maximum, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be at least 1")
    n_queries, n_keys = Q.shape[-2], K.shape[-2]
    Qs = Q / math.sqrt(Q.shape[-1])
    maximum = torch.full(Q.shape[:-1], -math.inf, dtype=Q.dtype, device=Q.device)
    total = torch.zeros_like(maximum)
    out = 0
    for a in range(0, n_keys, tile):
        b = min(n_keys, a + tile)
        s = Qs @ K[..., a:b, :].mT
        if causal:
            i = torch.arange(n_queries, device=Q.device)
            j = torch.arange(a, b, device=Q.device)
            s = s.masked_fill(j[None, :] > i[:, None], -math.inf)
        new = torch.maximum(maximum, s.detach().amax(-1))
        p = torch.exp(s - new[..., None])
        factor = torch.exp(maximum - new)
        total = total * factor + p.sum(-1)
        out = out * factor[..., None] + p @ V[..., a:b, :]
        maximum = new
    return out / total[..., None]
