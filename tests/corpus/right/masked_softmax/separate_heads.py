"""Masked softmax: masked_fill with minus infinity, then nan_to_num for the empty rows."""

import torch
import torch.nn.functional as F


def check_lengths(X, valid_lens):
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape != (batch,) and valid_lens.shape != (batch, n_queries):
        raise ValueError("valid_lens must have the shape (batch,) or (batch, n_queries)")
    if bool((valid_lens > n_keys).any()) or bool((valid_lens < 0).any()):
        raise ValueError("every valid length must lie between 0 and n_keys")


def padding_mask(X, valid_lens):
    """True where the key is padding; broadcasts against X."""
    if valid_lens.dim() == 1:
        valid_lens = valid_lens.unsqueeze(1)
    positions = torch.arange(X.size(-1), device=valid_lens.device)
    return (positions >= valid_lens.unsqueeze(-1)).to(X.device)


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    check_lengths(X, valid_lens)
    scores = X.masked_fill(padding_mask(X, valid_lens), float("-inf"))
    return torch.nan_to_num(F.softmax(scores, dim=-1), nan=0.0)
