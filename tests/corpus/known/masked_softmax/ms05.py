# mistake: plus_infinity
# in words: the padding is filled with plus infinity
import math

import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.dim() not in (1, 2) or valid_lens.shape != X.shape[: valid_lens.dim()]:
        raise ValueError("bad shape of valid_lens")
    n_keys = X.shape[-1]
    if (valid_lens > n_keys).any():
        raise ValueError("bad length")
    if valid_lens.dim() == 1:
        valid_lens = valid_lens.unsqueeze(-1)
    ok = torch.arange(n_keys, device=X.device)[None, None, :] < valid_lens.unsqueeze(-1)
    penalty = torch.zeros(ok.shape, dtype=X.dtype, device=X.device)
    penalty[~ok] = math.inf
    weights = torch.softmax(X + penalty, dim=-1)
    return torch.nan_to_num(weights, nan=0.0)
