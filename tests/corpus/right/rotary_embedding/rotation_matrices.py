# note: a two-by-two matrix for each pair and token
import math

import torch


def matrices(positions, n_pairs, base, dtype):
    rate = torch.tensor(float(base), dtype=dtype).pow(-torch.arange(n_pairs, dtype=dtype) / n_pairs)
    angle = torch.outer(positions.to(dtype), rate)
    c, s = torch.cos(angle), torch.sin(angle)
    return torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)


def rotate(x, positions, base=10000.0, interleaved=True):
    d_head = x.size(-1)
    if d_head % 2 == 1:
        raise ValueError("pairs need an even d_head")
    if positions.dim() != 1 or positions.numel() != x.size(-3):
        raise ValueError("each token needs one position")
    wide = x.double() if x.dtype == torch.float64 else x.float()
    m = matrices(positions, d_head // 2, base, wide.dtype)
    if interleaved:
        return torch.einsum("tirc,...thic->...thir", m, wide.unflatten(-1, (-1, 2))).flatten(-2).to(x.dtype)
    return torch.einsum("tirc,...thci->...thri", m, wide.unflatten(-1, (2, -1))).flatten(-2).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    scores = torch.einsum("...qhd,...khd->...qkh", rotate(queries, positions), rotate(keys, positions))
    weights = (scores / math.sqrt(queries.size(-1))).softmax(dim=-2)
    return torch.einsum("...qkh,...khv->...qhv", weights, values)
