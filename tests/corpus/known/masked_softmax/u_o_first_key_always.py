# mistake: length_zero_as_one
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    n, q, k = X.shape
    if valid_lens.shape not in ((n,), (n, q)):
        raise ValueError("shape")
    if (valid_lens > k).any():
        raise ValueError("length")
    ends = valid_lens[(...,) + (None,) * (3 - valid_lens.ndim)].clamp(min=1)
    pad = torch.arange(k, device=X.device) >= ends
    return X.masked_fill(pad, -torch.inf).softmax(-1)
