# mistake: nan_at_length_zero
# a row of length 0 is a softmax of -inf only and gives nan instead of zeros
import torch
import torch.nn.functional as F
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.ndim == 1 and len(valid_lens) == batch:
        lens = valid_lens.reshape(batch, 1, 1)
    elif valid_lens.ndim == 2 and tuple(valid_lens.shape) == (batch, n_queries):
        lens = valid_lens.reshape(batch, n_queries, 1)
    else:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if lens.max() > n_keys:
        raise ValueError("length too large")
    keys = torch.arange(n_keys, device=X.device).reshape(1, 1, n_keys)
    padding = keys >= lens
    return F.softmax(X.masked_fill(padding, float("-inf")), dim=-1)
