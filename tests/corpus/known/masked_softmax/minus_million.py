# mistake: uniform_at_length_zero
import torch
from torch import nn


def masked_softmax(X, valid_lens):
    """Softmax on the last axis, only over the first valid_lens entries."""
    shape = X.shape
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    if valid_lens.dim() == 1 and len(valid_lens) == shape[0]:
        lens = torch.repeat_interleave(valid_lens, shape[1])
    elif valid_lens.shape == shape[:2]:
        lens = valid_lens.reshape(-1)
    else:
        raise ValueError(f"valid_lens {tuple(valid_lens.shape)} does not fit {tuple(shape)}")
    if lens.max() > shape[-1]:
        raise ValueError("a length is larger than the number of keys")
    rows = X.reshape(-1, shape[-1]).clone()
    pad = torch.arange(shape[-1])[None, :] >= lens[:, None]
    rows[pad] = -1e6
    out = nn.functional.softmax(rows, dim=-1)
    return out.reshape(shape)
