# mistake: one_slope_for_all_heads
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
    k = F.pad(K, (0, 0, window - 1, 0)).unfold(2, window, 1)
    v = F.pad(V, (0, 0, window - 1, 0)).unfold(2, window, 1)
    back = torch.arange(window - 1, -1, -1, device=Q.device)
    scores = torch.einsum("bhnd,bhndw->bhnw", Q, k) / math.sqrt(d)
    if slopes is not None:
        scores = scores - (slopes.to(scores).repeat(len(Q))[: len(Q), None, None, None]) * back
    real = torch.arange(n, device=Q.device)[:, None] >= back
    weights = scores.masked_fill(~real, -torch.inf).softmax(-1)
    return torch.einsum("bhnw,bhndw->bhnd", weights, v)
