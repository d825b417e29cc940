# mistake: causal_within_tile
# the causal mask numbers the keys of each tile from 0, so that query i attends to the keys 0 to i of every tile
import math

import torch
from torch import Tensor


def finite(m):
    return m.masked_fill(m == -math.inf, 0)


def online_softmax(chunks, state=None):
    if state is None:
        m = torch.full_like(chunks[0][..., 0], -math.inf)
        total = torch.zeros_like(m)
    else:
        m, total = state[0].detach(), state[1]
    for c in chunks:
        new = torch.maximum(m, c.detach().amax(-1))
        total = total * (m - finite(new)).exp() + (c - finite(new)[..., None]).exp().sum(-1)
        m = new
    return m, total


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    if tile < 1:
        raise ValueError("tile must be positive")
    m = torch.full_like(Q[..., :1], -math.inf)
    total = torch.zeros_like(m)
    acc = torch.zeros_like(m)
    for k, v in zip(K.split(tile, -2), V.split(tile, -2)):
        scores = Q @ k.transpose(-1, -2) / math.sqrt(Q.shape[-1])
        if causal:
            mask = torch.ones(Q.shape[-2], k.shape[-2], dtype=torch.bool, device=Q.device).triu(1)
            scores = scores.masked_fill(mask, -math.inf)
        new = torch.maximum(m, scores.detach().amax(-1, keepdim=True))
        factor = (m - finite(new)).exp()
        p = (scores - finite(new)).exp()
        total = total * factor + p.sum(-1, keepdim=True)
        acc = acc * factor + p @ v
        m = new
    return acc / total
