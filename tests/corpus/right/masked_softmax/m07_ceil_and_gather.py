import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, n = X.shape
    if valid_lens is None:
        return X.softmax(2)
    if valid_lens.shape == (b,):
        L = valid_lens[:, None].expand(b, q)
    elif valid_lens.shape == (b, q):
        L = valid_lens
    else:
        raise ValueError(valid_lens.shape)
    if (L > n).any():
        raise ValueError("L > n_keys")
    # 2.5 keys means keys 0, 1 and 2; row r of the table has r ones
    count = L.double().ceil().clamp(min=0).long()
    table = torch.ones(n + 1, n, dtype=torch.bool, device=X.device).tril(-1)
    keep = table[count]
    Y = torch.where(keep, X, torch.full((), -torch.inf, dtype=X.dtype, device=X.device))
    Y = Y.masked_fill((count == 0)[..., None], 0.0)
    return Y.softmax(2).mul(keep.to(X.dtype))
