# mistake: one_global_maximum
# in words: one maximum of the whole tensor is taken off all rows
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    n_keys = X.shape[-1]
    if valid_lens is None:
        valid_lens = torch.full(X.shape[:1], n_keys, device=X.device)
    if valid_lens.dim() == 1:
        if valid_lens.shape[0] != X.shape[0]:
            raise ValueError("valid_lens: wrong batch")
        valid_lens = valid_lens[:, None].expand(X.shape[:2])
    if valid_lens.shape != X.shape[:2]:
        raise ValueError("valid_lens: wrong shape")
    if (valid_lens > n_keys).any():
        raise ValueError("valid_lens: too long")
    keep = torch.arange(n_keys, device=X.device) < valid_lens[:, :, None]
    safe = torch.where(keep, X, torch.full_like(X, float("-inf")))
    biggest = safe.detach().max()
    if torch.isinf(biggest):
        biggest = torch.zeros_like(biggest)
    num = torch.exp(safe - biggest)
    den = num.sum(dim=-1, keepdim=True)
    return num / torch.where(den > 0, den, torch.ones_like(den))
