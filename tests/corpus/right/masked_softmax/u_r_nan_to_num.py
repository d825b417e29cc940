# right: empty rows become nan in the softmax and zeros by nan_to_num; masked_fill keeps the nan out of the gradient of X.
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
    pad = torch.arange(k, device=X.device) >= valid_lens[(...,) + (None,) * (3 - valid_lens.ndim)]
    return torch.nan_to_num(torch.softmax(X.masked_fill(pad, -torch.inf), -1), nan=0.0)
