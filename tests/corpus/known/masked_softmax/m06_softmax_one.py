# mistake: one_added_to_the_sum
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, nq, nk = X.shape
    if valid_lens is None:
        keep = torch.ones(b, nq, nk, dtype=torch.bool, device=X.device)
    else:
        if valid_lens.shape not in (torch.Size([b]), torch.Size([b, nq])):
            raise ValueError("shape of valid_lens")
        if (valid_lens > nk).any():
            raise ValueError("valid_lens > n_keys")
        lens = valid_lens.reshape(b, -1, 1)
        keep = (torch.arange(nk, device=X.device) < lens).expand(b, nq, nk)
    Z = X.masked_fill(~keep, -torch.inf)
    top = Z.amax(-1, keepdim=True).clamp(min=0).detach()
    e = torch.exp(Z - top)
    return e / (torch.exp(-top) + e.sum(-1, keepdim=True))
