# mistake: lengths_cut_to_integers
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for padded keys."""
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape == (batch,):
        lens = valid_lens[:, None, None]
    elif valid_lens.shape == (batch, n_queries):
        lens = valid_lens[:, :, None]
    else:
        raise ValueError(f"valid_lens has the shape {tuple(valid_lens.shape)}")
    if (valid_lens > n_keys).any():
        raise ValueError("a length is greater than n_keys")
    lens = lens.to(torch.int64)
    valid = torch.arange(n_keys, device=X.device) < lens
    valid = valid.expand(batch, n_queries, n_keys)
    some = valid.any(dim=-1, keepdim=True)
    scores = X.masked_fill(~valid, float("-inf")).masked_fill(~some, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(~valid, 0.0)
