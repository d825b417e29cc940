# note: exponentials by hand in a wider dtype, empty rows get a denominator of 1, match on the number of axes
import torch
from torch import Tensor


def _lengths(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, k = X.shape
    match None if valid_lens is None else tuple(valid_lens.shape):
        case None:
            return X.new_full((b, 1, 1), k, dtype=torch.float64)
        case (n,) if n == b:
            lens = valid_lens[:, None, None]
        case (n, m) if n == b and m == q:
            lens = valid_lens[:, :, None]
        case shape:
            raise ValueError(f"valid_lens of shape {shape} for scores of shape {(b, q, k)}")
    if (lens > k).any():
        raise ValueError(f"a length is greater than {k}")
    return lens


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    lens = _lengths(X, valid_lens)
    valid = torch.arange(X.shape[-1], device=X.device) < lens
    work = X.to(torch.promote_types(X.dtype, torch.float32))
    lowest = torch.finfo(work.dtype).min
    top = torch.where(valid, work, lowest).amax(-1, keepdim=True).detach()
    gap = torch.where(valid, work - top, 0.0)
    e = torch.where(valid, gap.exp(), 0.0)
    total = e.sum(-1, keepdim=True)
    return (e / (total + (total == 0))).to(X.dtype)
