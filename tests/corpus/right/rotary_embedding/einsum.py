"""Rotary embedding with a rotation matrix for each token and pair."""

import torch


def rotations(positions, n_pairs, base, like):
    """(n_tokens, n_pairs, 2, 2)"""
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    rates = float(base) ** -(torch.arange(n_pairs, dtype=dtype, device=like.device) / n_pairs)
    angles = torch.einsum("t,i->ti", positions.to(dtype), rates)
    cos, sin = torch.cos(angles), torch.sin(angles)
    return torch.stack([cos, -sin, sin, cos], dim=-1).unflatten(-1, (2, 2))


def rotate(x, positions, base=10000.0, interleaved=True):
    n_tokens, d_head = x.shape[-3], x.shape[-1]
    if d_head % 2 != 0:
        raise ValueError("d_head must be even")
    if positions.shape != (n_tokens,):
        raise ValueError("there must be one position for each token")
    matrices = rotations(positions, d_head // 2, base, x)
    if interleaved:
        pairs = x.unflatten(-1, (d_head // 2, 2)).to(matrices.dtype)
        turned = torch.einsum("tiab,...thib->...thia", matrices, pairs)
    else:
        pairs = x.unflatten(-1, (2, d_head // 2)).to(matrices.dtype)
        turned = torch.einsum("tiab,...thbi->...thai", matrices, pairs)
    return turned.flatten(-2).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    queries, keys = rotate(queries, positions), rotate(keys, positions)
    scores = torch.einsum("...qhd,...khd->...hqk", queries, keys) / queries.shape[-1] ** 0.5
    return torch.einsum("...hqk,...khv->...qhv", torch.softmax(scores, dim=-1), values)
