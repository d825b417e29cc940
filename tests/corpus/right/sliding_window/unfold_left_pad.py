# right: Keys are padded on the left and cut by Tensor.unfold, so each token has its own window.
import math

import torch
from torch.nn import functional as F


def alibi_slopes(num_heads):
    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(num_heads).is_integer():
        return torch.tensor(power_of_2(num_heads))
    closest = 2 ** math.floor(math.log2(num_heads))
    return torch.tensor(power_of_2(closest) + power_of_2(2 * closest)[0::2][: num_heads - closest])


def sliding_attention(Q, K, V, window, slopes=None):
    if window < 1:
        raise ValueError("window must be at least 1")
    dtype = Q.dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    Q, K, V = Q.to(wide), K.to(wide), V.to(wide)
    n = Q.size(2)
    w = min(window, n)
    keys = F.pad(K, (0, 0, w - 1, 0)).unfold(2, w, 1)  # b, h, n, d, w
    values = F.pad(V, (0, 0, w - 1, 0)).unfold(2, w, 1)
    scores = torch.einsum("bhnd,bhndw->bhnw", Q, keys) / math.sqrt(Q.size(-1))
    back = torch.arange(w - 1, -1, -1, device=Q.device)  # i - j of each column
    if slopes is not None:
        scores = scores - slopes.to(wide)[:, None, None] * back
    outside = back[None, :] > torch.arange(n, device=Q.device)[:, None]
    weights = scores.masked_fill(outside, float("-inf")).softmax(dim=-1)
    return torch.einsum("bhnw,bhndw->bhnd", weights, values).to(dtype)
