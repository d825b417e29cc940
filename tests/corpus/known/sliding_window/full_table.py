# mistake: table_of_all_pairs
# All n x n scores are made and the band is masked, so memory grows with the square.
import torch
from torch import Tensor


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
    i = torch.arange(n, device=Q.device)[:, None]
    j = torch.arange(n, device=Q.device)[None, :]
    seen = (j <= i) & (j > i - window)
    scores = Q.to(wide) @ K.to(wide).transpose(-1, -2) * d**-0.5
    if slopes is not None:
        scores = scores - slopes.to(wide).view(h, 1, 1) * (i - j)
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return (weights @ V.to(wide)).to(Q.dtype)
