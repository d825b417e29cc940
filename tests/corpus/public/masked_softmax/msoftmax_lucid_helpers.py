# deviates: misuse raises AssertionError
import torch
from torch import einsum


# helpers

def exists(val):
    return val is not None

def default(val, d):
    return val if exists(val) else d

def max_neg_value(t):
    return -torch.finfo(t.dtype).max

def lens_to_mask(lens, seq_len, device):
    seq = torch.arange(seq_len, device = device)
    return seq < lens[..., None]

# main

def masked_softmax(X, valid_lens = None):
    b, i, j = X.shape

    if not exists(valid_lens):
        return X.softmax(dim = -1)

    assert valid_lens.shape == (b,) or valid_lens.shape == (b, i), 'lens must be (b,) or (b, i)'
    assert (valid_lens <= j).all(), 'lens cannot be greater than the number of keys'

    mask = lens_to_mask(valid_lens, j, X.device)

    if mask.ndim == 2:
        mask = mask[:, None, :]

    sim = X.masked_fill(~mask, max_neg_value(X))
    attn = sim.softmax(dim = -1)

    # fully masked out rows
    return attn.masked_fill(~mask, 0.)
