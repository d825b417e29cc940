# mistake: uniform_at_length_zero
# seen: d2l-en pull 2423. Mistake: a row of length 0 gets uniform weights over the padding in place of zeros.
import torch
from torch import Tensor


def _key_mask(X: Tensor, valid_lens: Tensor) -> Tensor:
    """True where a query may look at a key; broadcasts to the shape of X."""
    b, q, k = X.shape
    if tuple(valid_lens.shape) not in {(b,), (b, q)}:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if valid_lens.numel() and valid_lens.max() > k:
        raise ValueError("valid_lens exceeds n_keys")
    if valid_lens.dim() == 1:
        valid_lens = valid_lens[:, None]
    position = torch.arange(k, device=valid_lens.device, dtype=torch.double)
    return (position < valid_lens[..., None].double()).to(X.device)


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return X.softmax(-1)
    visible = _key_mask(X, valid_lens)
    has_key = visible.any(-1, keepdim=True)
    # a row of -inf alone would give nan: rows without keys get finite scores
    filled = torch.where(visible, X, torch.full_like(X, float("-inf")))
    filled = torch.where(has_key, filled, torch.zeros_like(X))
    weights = filled.softmax(-1)
    return weights
