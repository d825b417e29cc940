# mistake: padded_scores_near_zero
# in words: padded scores become 1e-9 before the softmax
import torch
from torch import Tensor

TINY = 1e-9


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return X.softmax(-1)
    b, q, k = X.shape
    if tuple(valid_lens.shape) == (b,):
        lens = valid_lens.reshape(b, 1, 1)
    elif tuple(valid_lens.shape) == (b, q):
        lens = valid_lens.reshape(b, q, 1)
    else:
        raise ValueError(f"cannot use lengths of shape {tuple(valid_lens.shape)}")
    if valid_lens.numel() and valid_lens.max() > k:
        raise ValueError("too long")
    valid = torch.arange(k, device=X.device).view(1, 1, k) < lens
    blanked = torch.where(valid, X, torch.full_like(X, TINY))
    weights = blanked.softmax(-1)
    return torch.where(lens > 0, weights, torch.zeros_like(weights))
