# mistake: table_of_all_pairs
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
    scores = Q @ K.transpose(-2, -1) / math.sqrt(d)
    i = torch.arange(n, device=Q.device)
    distance = i[:, None] - i[None, :]
    if slopes is not None:
        scores = scores - slopes.to(scores).view(-1, 1, 1) * distance
    band = (distance >= 0) & (distance < window)
    return torch.softmax(scores.masked_fill(~band, float("-inf")), dim=-1) @ V
