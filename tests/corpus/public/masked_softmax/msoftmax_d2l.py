import torch
from torch import nn


def masked_softmax(X, valid_lens):
    """Perform softmax operation by masking elements on the last axis."""

    def _sequence_mask(X, valid_len, value=0):
        maxlen = X.size(1)
        mask = torch.arange(maxlen, device=X.device)[None, :] < valid_len[:, None]
        return X.masked_fill(~mask, value), mask

    # X: 3D tensor, valid_lens: 1D or 2D tensor
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)

    shape = X.shape
    if tuple(valid_lens.shape) not in ((shape[0],), (shape[0], shape[1])):
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if (valid_lens > shape[2]).any():
        raise ValueError("a valid length is larger than the number of keys")
    if valid_lens.dim() == 1:
        valid_lens = torch.repeat_interleave(valid_lens, shape[1])
    else:
        valid_lens = valid_lens.reshape(-1)
    # The book fills in -1e6, but a row of length 0 would come out uniform
    X, keep = _sequence_mask(X.reshape(-1, shape[-1]), valid_lens, value=torch.finfo(X.dtype).min)
    return (nn.functional.softmax(X, dim=-1) * keep).reshape(shape)
