"""Helpers in the manner of OpenNMT-py's utils/misc.py"""
import torch


def sequence_mask(lengths, max_len=None):
    """
    Creates a boolean mask from sequence lengths.
    """
    batch_size = lengths.numel()
    max_len = max_len or lengths.max()
    return (torch.arange(0, max_len, device=lengths.device)
            .type_as(lengths)
            .repeat(batch_size, 1)
            .lt(lengths.reshape(-1).unsqueeze(1)))


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return torch.softmax(X, 2)

    b, tgt_l, src_l = X.shape
    if valid_lens.shape == (b,):
        mask = sequence_mask(valid_lens, max_len=src_l).unsqueeze(1)  # make it broadcastable
    elif valid_lens.shape == (b, tgt_l):
        mask = sequence_mask(valid_lens, max_len=src_l).view(b, tgt_l, src_l)
    else:
        raise ValueError("lengths do not fit the scores")
    if valid_lens.max() > src_l:
        raise ValueError("lengths do not fit the scores")

    align = X.masked_fill(~mask, -float('inf'))
    # nothing to align with: let the softmax see zeros, and wipe the row afterwards
    empty = ~mask.any(-1, keepdim=True)
    align = align.masked_fill(empty, 0.)
    return torch.softmax(align, 2).masked_fill(~mask, 0.)
