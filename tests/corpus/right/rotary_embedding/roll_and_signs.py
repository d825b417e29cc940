# note: partners by an index, signs by a vector, written into an empty tensor
import math

import torch


def rotate(x, positions, base=10000.0, interleaved=True):
    n_tokens, _, d = x.shape[-3:]
    assert d % 2 == 0, "odd d_head"
    assert positions.shape == (n_tokens,), "one position for each token"
    j = torch.arange(d)
    pair = j // 2 if interleaved else j % (d // 2)
    other = j ^ 1 if interleaved else (j + d // 2) % d
    sign = torch.where(other > j, -1.0, 1.0)
    angle = positions.to(torch.float64).view(-1, 1, 1) / base ** (2.0 * pair / d)
    out = torch.empty_like(x)
    out[...] = x * angle.cos() + x.index_select(-1, other) * (angle.sin() * sign)
    return out


def rotary_attention(queries, keys, values, positions):
    d = queries.shape[-1]
    q, k, v = rotate(queries, positions), rotate(keys, positions), values
    s = (q.unsqueeze(-3) * k.unsqueeze(-4)).sum(-1) / d**0.5  # (..., queries, keys, heads)
    e = torch.exp(s - s.amax(-2, keepdim=True))
    w = e / e.sum(-2, keepdim=True)
    return (w.unsqueeze(-1) * v.unsqueeze(-4)).sum(-3)
