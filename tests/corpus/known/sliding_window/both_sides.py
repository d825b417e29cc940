# mistake: not_causal
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
    if window < 1:
        raise ValueError("window must be at least 1")
    n, d = Q.shape[-2:]
    window = min(window, n)
    offset = torch.arange(-(window - 1), window, device=Q.device)
    j = torch.arange(n, device=Q.device)[:, None] + offset
    outside = (j < 0) | (j >= n)
    j = j.clamp(0, n - 1)
    scores = torch.einsum("bhnd,bhnwd->bhnw", Q, K[:, :, j]) / math.sqrt(d)
    if slopes is not None:
        scores = scores - slopes.to(scores)[:, None, None] * offset.abs()
    weights = scores.masked_fill(outside, -torch.inf).softmax(-1)
    return torch.einsum("bhnw,bhnwd->bhnd", weights, V[:, :, j])
