# right: the exponentials, their sum and the row maximum by hand with torch.where, empty rows divided by 1.
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, k = X.shape
    if valid_lens is None:
        ok = X.new_ones(b, q, k, dtype=torch.bool)
    else:
        if tuple(valid_lens.shape) not in {(b,), (b, q)}:
            raise ValueError(f"lengths of shape {tuple(valid_lens.shape)}")
        lens = valid_lens.detach().to(X.device, torch.float64)
        if torch.any(lens > k):
            raise ValueError("a length is larger than the number of keys")
        lens = lens.reshape(b, -1, 1).expand(b, q, 1) if b * q else lens.new_zeros(b, q, 1)
        ok = torch.arange(k, device=X.device).double() < lens
    wide = X.to(torch.promote_types(X.dtype, torch.float32))
    low = torch.full((), float("-inf"), dtype=wide.dtype, device=X.device)
    shifted = torch.where(ok, wide, low)
    if k:
        top = shifted.detach().amax(-1, keepdim=True)
        top = torch.where(torch.isneginf(top), torch.zeros_like(top), top)
        shifted = shifted - top
    e = torch.exp(shifted)
    total = e.sum(-1, keepdim=True)
    return (e / torch.where(total == 0, torch.ones_like(total), total)).to(X.dtype)
