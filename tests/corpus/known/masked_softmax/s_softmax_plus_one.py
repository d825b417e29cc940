# mistake: one_added_to_the_sum
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    B, Q, K = X.shape
    if valid_lens is None:
        ok = torch.ones(1, 1, K, dtype=torch.bool, device=X.device)
    else:
        if valid_lens.shape == (B,):
            L = valid_lens[:, None, None]
        elif valid_lens.shape == (B, Q):
            L = valid_lens[..., None]
        else:
            raise ValueError("shape of valid_lens")
        if torch.any(L > K):
            raise ValueError("valid_lens > n_keys")
        ok = torch.arange(K, device=X.device).view(1, 1, K) < L
    Z = X.masked_fill(~ok, torch.finfo(X.dtype).min)
    top = Z.amax(-1, keepdim=True).clamp(min=0).detach()
    E = torch.exp(Z - top) * ok
    return E / (torch.exp(-top) + E.sum(-1, keepdim=True))  # exp(-top) is the 1, shifted
