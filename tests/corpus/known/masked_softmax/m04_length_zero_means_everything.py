# mistake: plain_softmax_at_length_zero
# in words: reads a length of 0 as "no length given", so such a row gets an ordinary softmax
# true: only rows of length 0 are wrong: they sum to 1 over all keys
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    n_keys = X.size(2)
    if valid_lens is None:
        valid_lens = torch.full(X.shape[:1], n_keys, device=X.device)
    if valid_lens.shape == X.shape[:1]:
        limit = valid_lens[:, None].expand(X.shape[:2])
    elif valid_lens.shape == X.shape[:2]:
        limit = valid_lens
    else:
        raise ValueError(f"cannot use valid_lens of shape {tuple(valid_lens.shape)}")
    if (limit > n_keys).any():
        raise ValueError("length exceeds number of keys")
    # 0 -> nothing to mask
    limit = torch.where(limit == 0, torch.full_like(limit, n_keys), limit)
    ok = torch.arange(n_keys, device=X.device).lt(limit[..., None])
    return X.masked_fill(ok.logical_not(), -torch.inf).softmax(dim=-1)
