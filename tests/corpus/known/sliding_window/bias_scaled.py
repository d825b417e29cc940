# mistake: slope_divided_by_the_root
# The bias is subtracted before the division by sqrt(d_head), so each slope is too small.
import torch
from torch import Tensor
from torch.nn import functional as F


def alibi_slopes(num_heads: int) -> Tensor:
    p = 1 << (num_heads.bit_length() - 1)
    slopes = 2.0 ** (-8.0 * torch.arange(1, p + 1) / p)
    rest = num_heads - p
    more = 2.0 ** (-8.0 * (2 * torch.arange(rest) + 1) / (2 * p))
    return torch.cat([slopes, more])


def sliding_attention(Q: Tensor, K: Tensor, V: Tensor, window: int, slopes: Tensor | None = None) -> Tensor:
    if window <= 0:
        raise ValueError(f"a window of {window} tokens")
    b, h, n, d = Q.shape
    wide = torch.promote_types(Q.dtype, torch.float32)
    w = min(window, n)
    blocks = -(-n // w)
    tail = blocks * w - n
    q = F.pad(Q.to(wide), (0, 0, 0, tail)).reshape(b, h, blocks, w, d)

    def two_blocks(t: Tensor) -> Tensor:
        t = F.pad(t.to(wide), (0, 0, 0, tail)).reshape(b, h, blocks, w, d)
        before = F.pad(t, (0, 0, 0, 0, 1, 0))[:, :, :-1]
        return torch.cat([before, t], dim=3)

    i = torch.arange(blocks * w, device=Q.device).view(blocks, w, 1)
    j = (torch.arange(blocks, device=Q.device).view(blocks, 1, 1) - 1) * w + torch.arange(2 * w, device=Q.device)
    seen = (j >= 0) & (j <= i) & (j > i - window)
    scores = q @ two_blocks(K).transpose(-1, -2)
    if slopes is not None:
        scores = scores - slopes.to(wide).view(h, 1, 1, 1) * (i - j)
    scores = scores * d**-0.5
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    out = weights @ two_blocks(V)
    return out.reshape(b, h, blocks * w, d)[:, :, :n].to(Q.dtype)
