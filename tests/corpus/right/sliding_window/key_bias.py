# right
import math

import torch
import torch.nn.functional as F


def alibi_slopes(num_heads):
    if math.log2(num_heads).is_integer():
        first = 2.0 ** (-8.0 / num_heads)
        return torch.tensor([first ** (h + 1) for h in range(num_heads)])
    lower = 2 ** math.floor(math.log2(num_heads))
    return torch.cat([alibi_slopes(lower), alibi_slopes(2 * lower)[0::2][: num_heads - lower]])


def sliding_attention(Q, K, V, window, slopes=None):
    """The bias slope * j of the key alone gives the same softmax."""
    if window < 1:
        raise ValueError(f"window {window} sees nothing")
    n, d_head = Q.shape[-2], Q.shape[-1]
    window = min(window, n)
    position = torch.arange(n, device=Q.device)
    index = position.unsqueeze(1) + torch.arange(1 - window, 1, device=Q.device)
    outside = index < 0
    index = index.clamp(min=0)
    k = K[:, :, index, :]
    v = V[:, :, index, :]
    scores = torch.matmul(k, Q.unsqueeze(-1)).squeeze(-1) / math.sqrt(d_head)
    if slopes is not None:
        slopes = slopes.to(device=Q.device, dtype=Q.dtype)
        relative = torch.arange(window, device=Q.device, dtype=Q.dtype) - (window - 1)
        scores = scores + slopes.view(1, -1, 1, 1) * relative
    scores = scores.masked_fill(outside, float("-inf"))
    return torch.matmul(torch.softmax(scores, -1).unsqueeze(-2), v).squeeze(-2)
