# mistake: uniform_at_length_zero + one_length_for_all_queries
# in words: adds -1e4 to padding, never cleans empty rows + averages the lengths of a batch item
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    dims = tuple(valid_lens.shape)
    if dims != (batch,) and dims != (batch, n_queries):
        raise ValueError(f"{dims} is no shape for valid_lens")
    if (valid_lens > n_keys).any():
        raise ValueError(f"there are only {n_keys} keys")
    if len(dims) == 2:
        valid_lens = valid_lens.to(torch.float64).mean(dim=1)
    is_pad = torch.arange(n_keys, device=X.device)[None, None, :] >= valid_lens[:, None, None]
    additive = torch.where(is_pad, -1e4, 0.0).to(X.dtype)
    return torch.softmax(X.masked_fill(is_pad, 0.0) + additive, dim=-1)
