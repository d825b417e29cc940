# mistake: lengths_of_items_on_queries
# in words: a length per batch item cuts off queries instead of keys
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if (valid_lens > n_keys).any():
        raise ValueError("a length is greater than the number of keys")
    if list(valid_lens.shape) == [batch]:
        keep = torch.arange(n_queries, device=X.device)[None, :, None] < valid_lens[:, None, None]
        keep = keep.expand(batch, n_queries, n_keys)
    elif list(valid_lens.shape) == [batch, n_queries]:
        keep = torch.arange(n_keys, device=X.device)[None, None, :] < valid_lens[:, :, None]
    else:
        raise ValueError("valid_lens has to be (batch,) or (batch, n_queries)")
    scores = torch.where(keep, X, float("-inf"))
    # softmax of a row of -inf is nan, so such rows get zeros as scores first
    empty = ~keep.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(empty, 0.0)
    return torch.softmax(scores, -1).masked_fill(empty, 0.0)
