"""Rotary embedding with the sines and cosines of every column, and a partner for each column."""

import math

import torch


def partners(x, interleaved):
    """The other column of each pair, with the sign that it has in the formula."""
    if interleaved:
        return torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def rotate(x, positions, base=10000.0, interleaved=True):
    d_head = x.size(-1)
    if d_head % 2:
        raise ValueError("an odd number of columns has no pairs")
    if positions.dim() != 1 or positions.size(0) != x.size(-3):
        raise ValueError(f"{positions.size(0)} positions for {x.size(-3)} tokens")
    pairs = torch.arange(d_head // 2, dtype=torch.float64, device=x.device)
    rates = torch.exp(-math.log(base) * 2 * pairs / d_head)
    rates = rates.repeat_interleave(2) if interleaved else torch.cat((rates, rates))
    angles = (positions.double().unsqueeze(1) * rates).unsqueeze(1)  # (n_tokens, 1, d_head)
    return (x * angles.cos() + partners(x, interleaved) * angles.sin()).to(x.dtype)


def rotary_attention(queries, keys, values, positions):
    q = rotate(queries, positions).transpose(-2, -3)
    k = rotate(keys, positions).transpose(-2, -3)
    weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.size(-1)), dim=-1)
    return (weights @ values.transpose(-2, -3)).transpose(-2, -3)
