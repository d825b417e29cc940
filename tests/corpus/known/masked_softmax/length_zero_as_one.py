# mistake: length_zero_as_one
import torch
from torch import nn


def masked_softmax(X, valid_lens):
    """Softmax on the last axis, only over the first valid_lens entries."""
    shape = X.shape
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    if valid_lens.dim() == 1 and len(valid_lens) == shape[0]:
        vl = torch.repeat_interleave(valid_lens, shape[1])
    elif valid_lens.shape == shape[:2]:
        vl = valid_lens.reshape(-1)
    else:
        raise ValueError(f"valid_lens {tuple(valid_lens.shape)} does not fit {tuple(shape)}")
    if vl.max() > shape[-1]:
        raise ValueError("a length is larger than the number of keys")
    vl = vl.clamp(min=1)
    x2d = X.reshape(-1, shape[-1]).clone()
    hide = torch.arange(shape[-1])[None, :] >= vl[:, None]
    x2d[hide] = -float("inf")
    attn = nn.functional.softmax(x2d, dim=-1)
    attn = torch.where(hide, 0.0, attn)
    return attn.reshape(shape)
