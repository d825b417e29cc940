# mistake: sum_detached
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    n_batch, n_q, n_k = X.shape
    mask = torch.ones_like(X, dtype=torch.bool)
    if valid_lens is not None:
        if valid_lens.dim() == 1 and valid_lens.shape[0] == n_batch:
            limit = valid_lens.reshape(-1, 1, 1)
        elif valid_lens.dim() == 2 and valid_lens.shape == X.shape[:2]:
            limit = valid_lens.reshape(n_batch, n_q, 1)
        else:
            raise ValueError("valid_lens: wrong shape")
        if (limit > n_k).any().item():
            raise ValueError("valid_lens: longer than the keys")
        mask = mask & (torch.arange(n_k, device=X.device) < limit)
    scores = X.masked_fill(~mask, -torch.inf)
    # constants for numerical stability
    peak = scores.detach().amax(dim=-1, keepdim=True)
    peak = peak.masked_fill(peak == -torch.inf, 0)
    numer = (scores - peak).exp()
    denom = numer.sum(dim=-1, keepdim=True).detach()
    denom = denom.masked_fill(denom == 0, 1)
    return numer / denom
