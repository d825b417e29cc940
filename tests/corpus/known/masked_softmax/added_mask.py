# mistake: nan_gradient_at_length_zero
# a mask of 0 and -inf is added and the nan rows of length 0 are overwritten afterwards, so the gradients of these rows are nan
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return X.softmax(-1)

    if tuple(valid_lens.shape) == (X.size(0),):
        lens = valid_lens[:, None].expand(X.size(0), X.size(1))
    elif tuple(valid_lens.shape) == tuple(X.shape[:2]):
        lens = valid_lens
    else:
        raise ValueError("wrong shape of valid_lens")
    if bool((lens > X.size(2)).any()):
        raise ValueError("wrong length")

    allowed = torch.arange(X.size(2), device=X.device)[None, None] < lens[..., None]
    attn_mask = torch.zeros_like(X).masked_fill(~allowed, -torch.inf)
    limits = torch.finfo(X.dtype)
    weights = (X.clamp(limits.min, limits.max) + attn_mask).softmax(-1)
    return torch.where(allowed, weights, torch.zeros_like(weights))
