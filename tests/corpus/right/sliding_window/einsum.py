# right
import math

import torch
import torch.nn.functional as F


def alibi_slopes(num_heads):
    def powers(n):
        return [2 ** (-8 * h / n) for h in range(1, n + 1)]

    p = 2 ** int(math.log2(num_heads))
    slopes = powers(p)
    if p < num_heads:
        slopes += powers(2 * p)[::2][: num_heads - p]
    return torch.tensor(slopes)


def sliding_attention(Q, K, V, window, slopes=None):
    if not window >= 1:
        raise ValueError("a window holds at least the token itself")
    n = Q.size(2)
    w = min(window, n)
    keys = F.pad(K, (0, 0, w - 1, 0)).unfold(2, w, 1)  # b h n d w
    values = F.pad(V, (0, 0, w - 1, 0)).unfold(2, w, 1)
    scores = torch.einsum("bhnd,bhndw->bhnw", Q, keys) * Q.size(-1) ** -0.5
    distance = torch.arange(w, device=Q.device).flip(0)
    if slopes is not None:
        scores = scores - torch.einsum("h,w->hw", slopes.to(scores.dtype), distance.to(scores.dtype))[:, None]
    outside = distance[None] > torch.arange(n, device=Q.device)[:, None]
    weights = scores.masked_fill(outside, -torch.inf).softmax(-1)
    return torch.einsum("bhnw,bhndw->bhnd", weights, values)
