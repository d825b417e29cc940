# mistake: uniform_at_length_zero
# in words: finite filler -1e6
import torch
from torch import Tensor
from torch.nn import functional as F


def sequence_mask(X, valid_len, value=0.0):
    maxlen = X.size(1)
    mask = torch.arange(maxlen, device=X.device)[None, :] < valid_len[:, None]
    return torch.where(mask, X, torch.tensor(value, dtype=X.dtype, device=X.device))


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    shape = X.shape
    if valid_lens.shape == shape[:1]:
        valid_lens = torch.repeat_interleave(valid_lens, shape[1])
    elif valid_lens.shape == shape[:2]:
        valid_lens = valid_lens.reshape(-1)
    else:
        raise ValueError("valid_lens must be 1D or 2D and fit X")
    if (valid_lens > shape[2]).any():
        raise ValueError("valid_lens > n_keys")
    flat = sequence_mask(X.reshape(-1, shape[-1]), valid_lens, value=-1e6)
    return F.softmax(flat.reshape(shape), dim=-1)
