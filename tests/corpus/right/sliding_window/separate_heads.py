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


def _one_head(q, k, v, window, slope):
    # q, k, v (batch, n, d)
    n, d = q.shape[1], q.shape[2]
    k = F.pad(k, (0, 0, window - 1, 0)).unfold(1, window, 1)  # (batch, n, d, window)
    v = F.pad(v, (0, 0, window - 1, 0)).unfold(1, window, 1)
    back = torch.arange(window - 1, -1, -1, device=q.device)
    scores = torch.einsum("bnd,bndw->bnw", q, k) / d**0.5
    if slope is not None:
        scores = scores - slope * back
    real = torch.arange(n, device=q.device)[:, None] >= back
    weights = scores.masked_fill(~real, float("-inf")).softmax(dim=-1)
    return torch.einsum("bnw,bndw->bnd", weights, v)


def sliding_attention(Q, K, V, window, slopes=None):
    if window < 1:
        raise ValueError("window < 1")
    window = min(window, Q.shape[2])
    if slopes is not None:
        slopes = slopes.to(Q)
    batch, heads, n, d = Q.shape
    together = [t.flatten(0, 1) for t in (Q, K, V)]
    slope = None if slopes is None else slopes.repeat(batch)[:, None, None]
    return _one_head(*together, window, slope).unflatten(0, (batch, heads))
