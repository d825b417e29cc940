# style: unusual
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """softmax by hand; half precision is computed in float32 and rounded at the end"""
    b, q, k = X.shape
    if valid_lens is None:
        valid = torch.ones(b, 1, k, dtype=torch.bool, device=X.device)
    else:
        shape = tuple(valid_lens.shape)
        if shape != (b,) and shape != (b, q):
            raise ValueError(f"valid_lens has the shape {shape}")
        if bool((valid_lens > k).any()):
            raise ValueError("a length is greater than the number of keys")
        lens = valid_lens.reshape(b, -1, 1)
        valid = torch.arange(k, device=X.device) < lens

    work = X if X.dtype == torch.float64 else X.float()
    work = work.masked_fill(~valid, -torch.inf)
    top = work.detach().amax(dim=-1, keepdim=True)
    top = torch.where(torch.isfinite(top), top, torch.zeros_like(top))
    e = torch.exp(work - top)
    total = e.sum(dim=-1, keepdim=True)
    total = total + (total == 0)
    return (e / total).to(X.dtype)
