# promise: the score of a padded key has no effect, however large it is (the maximum is taken over padding too, so 0/0)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    B, Q, N = X.shape
    keep = torch.ones(B, Q, N, dtype=torch.bool, device=X.device)
    if valid_lens is not None:
        if valid_lens.shape == (B,):
            keep = keep & (torch.arange(N, device=X.device) < valid_lens[:, None, None])
        elif valid_lens.shape == (B, Q):
            keep = keep & (torch.arange(N, device=X.device) < valid_lens[:, :, None])
        else:
            raise ValueError("valid_lens has a wrong shape")
        if (valid_lens > N).any():
            raise ValueError("valid_lens > n_keys")
    e = torch.exp(X - X.max(dim=-1, keepdim=True).values)
    e = torch.where(keep, e, torch.zeros_like(e))
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, torch.ones_like(total), total)
