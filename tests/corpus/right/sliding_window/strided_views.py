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


class _Window:
    """Views of a padded tensor: no copy per key."""

    def __init__(self, tensor, window):
        self.view = F.pad(tensor, (0, 0, window - 1, 0)).unfold(-2, window, 1).transpose(-1, -2)


def sliding_attention(Q, K, V, window, slopes=None):
    if window < 1:
        raise ValueError("window must be positive")
    n = Q.shape[-2]
    window = min(int(window), n)
    wide = torch.promote_types(Q.dtype, torch.float32)
    k, v = _Window(K, window).view, _Window(V, window).view
    logits = (Q.to(wide).unsqueeze(-2) @ k.to(wide).mT).squeeze(-2) / math.sqrt(Q.shape[-1])
    age = torch.arange(window - 1, -1, -1, device=Q.device, dtype=wide)
    if slopes is not None:
        logits = torch.sub(logits, slopes.to(device=Q.device, dtype=wide).reshape(-1, 1, 1) * age)
    existing = torch.ones(n, window, dtype=torch.bool, device=Q.device).tril().flip(-1)
    logits = torch.where(existing, logits, -torch.inf)
    p = torch.exp(logits - logits.amax(-1, keepdim=True))
    p = p / p.sum(-1, keepdim=True)
    return (p.unsqueeze(-2) @ v.to(wide)).squeeze(-2).to(Q.dtype)
