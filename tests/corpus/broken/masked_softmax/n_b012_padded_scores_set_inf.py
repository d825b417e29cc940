# promise: Padded scores are set to -1e6 instead of -inf, so with valid scores such as -1e7 the padding gets the weight.
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for every key at or beyond the valid length.

    X is (batch, n_queries, n_keys); valid_lens is None, (batch,) or (batch, n_queries).
    The weights have the shape and dtype of X. Raises ValueError for lengths that do not fit.
    """
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    n_keys = X.shape[2]
    if valid_lens.shape != X.shape[:1] and valid_lens.shape != X.shape[:2]:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if (valid_lens > n_keys).any():
        raise ValueError("valid_lens must be at most n_keys")
    lens = valid_lens[:, None, None] if valid_lens.dim() == 1 else valid_lens[:, :, None]
    padded = torch.arange(n_keys, device=X.device) >= lens
    very_small = -1e4 if X.dtype == torch.float16 else -1e6
    scores = torch.where(padded, very_small, X)
    weights = torch.softmax(scores, dim=-1)
    empty = padded.all(dim=-1, keepdim=True)
    return weights.masked_fill(empty, 0)
