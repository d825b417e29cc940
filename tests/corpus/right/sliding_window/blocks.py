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
    if window < 1:
        raise ValueError("window has to be at least 1")
    n, d = Q.shape[-2:]
    window = min(window, n)
    blocks = -(-n // window)
    extra = blocks * window - n
    q = F.pad(Q, (0, 0, 0, extra)).unflatten(2, (blocks, window))
    k = F.pad(K, (0, 0, window, extra)).unflatten(2, (blocks + 1, window))
    v = F.pad(V, (0, 0, window, extra)).unflatten(2, (blocks + 1, window))
    k = torch.cat([k[:, :, :-1], k[:, :, 1:]], dim=3)
    v = torch.cat([v[:, :, :-1], v[:, :, 1:]], dim=3)
    scores = q @ k.transpose(-1, -2) / math.sqrt(d)
    row = torch.arange(window, device=Q.device)[:, None] + window
    col = torch.arange(2 * window, device=Q.device)
    distance = row - col
    if slopes is not None:
        scores = scores - slopes.to(scores)[:, None, None, None] * distance
    seen = (distance >= 0) & (distance < window)
    start = torch.arange(blocks, device=Q.device)[:, None, None] * window - window
    seen = seen & (start + col >= 0)
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return (weights @ v).flatten(2, 3)[:, :, :n]
