# mistake: finite_filler
import torch
from torch import nn


def masked_softmax(X, valid_lens):
    """Softmax on the last axis, only over the first valid_lens entries."""
    shape = X.shape
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    if valid_lens.dim() == 1 and len(valid_lens) == shape[0]:
        lengths = torch.repeat_interleave(valid_lens, shape[1])
    elif valid_lens.shape == shape[:2]:
        lengths = valid_lens.reshape(-1)
    else:
        raise ValueError(f"valid_lens {tuple(valid_lens.shape)} does not fit {tuple(shape)}")
    if lengths.max() > shape[-1]:
        raise ValueError("a length is larger than the number of keys")
    flat = X.reshape(-1, shape[-1]).clone()
    invalid = torch.arange(shape[-1])[None, :] >= lengths[:, None]
    flat[invalid] = -25.0
    result = nn.functional.softmax(flat, dim=-1)
    result = result.masked_fill((lengths == 0)[:, None], 0)
    return result.reshape(shape)
