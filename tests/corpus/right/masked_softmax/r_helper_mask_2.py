from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def _padding(shape: torch.Size, lens: Tensor, device: torch.device) -> Tensor:
    """True where a key is padding, broadcastable to `shape`."""
    batch, n_queries, n_keys = shape
    if tuple(lens.shape) not in {(batch,), (batch, n_queries)}:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if (lens > n_keys).any():
        raise ValueError("valid_lens has a length greater than n_keys")
    per_query = lens[:, None] if lens.ndim == 1 else lens
    positions = torch.arange(n_keys, device=device, dtype=torch.double)
    return torch.ge(positions, per_query.double().to(device)[..., None])


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return F.softmax(X, dim=2)
    pad = _padding(X.shape, valid_lens, X.device)
    lowest = torch.finfo(X.dtype).min
    # rows that are all padding become uniform here and are zeroed afterwards
    return F.softmax(X.masked_fill(pad, lowest), dim=2).masked_fill(pad, 0.0)
