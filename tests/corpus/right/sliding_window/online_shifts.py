# right: A loop over the distance, with a running maximum and sum as in online softmax, so nothing larger than the values is kept.
import torch
from torch import Tensor


def alibi_slopes(num_heads: int) -> Tensor:
    p = 1
    while 2 * p <= num_heads:
        p *= 2
    of = lambda n: [2 ** (-8 * h / n) for h in range(1, n + 1)]
    return torch.tensor((of(p) + of(2 * p)[::2])[:num_heads], dtype=torch.float64)


def sliding_attention(Q: Tensor, K: Tensor, V: Tensor, window: int, slopes: Tensor | None = None) -> Tensor:
    if window < 1:
        raise ValueError("window < 1")
    wide = torch.promote_types(Q.dtype, torch.float32)
    q, k, v = (t.to(wide) for t in (Q, K, V))
    n, scale = q.shape[-2], q.shape[-1] ** 0.5
    top = (q * k).sum(-1, keepdim=True) / scale  # the token itself is always seen
    total = torch.ones_like(top)
    out = v
    for back in range(1, min(window, n)):
        score = (q[:, :, back:] * k[:, :, :-back]).sum(-1, keepdim=True) / scale
        if slopes is not None:
            score = score - slopes.to(wide).view(-1, 1, 1) * back
        head, old = top[:, :, :back], top[:, :, back:]
        new = torch.maximum(old, score)
        keep, weight = (old - new).exp(), (score - new).exp()
        total = torch.cat([total[:, :, :back], total[:, :, back:] * keep + weight], 2)
        out = torch.cat([out[:, :, :back], out[:, :, back:] * keep + weight * v[:, :, :-back]], 2)
        top = torch.cat([head, new], 2)
    return (out / total).to(Q.dtype)
