# right: one row is written as a function of a vector and a number, and vmap runs it over queries and batch.
import torch
from torch import Tensor
from torch.func import vmap


def _row(x: Tensor, length: Tensor) -> Tensor:
    keep = torch.arange(x.shape[0], device=x.device) < length
    some = length > 0
    z = torch.where(keep, x, torch.full_like(x, -torch.inf))
    z = torch.where(some, z, torch.zeros_like(z))
    w = torch.softmax(z, 0)
    return torch.where(keep, w, torch.zeros_like(w))


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return X.softmax(-1)
    if valid_lens.shape == X.shape[:1]:
        lens = valid_lens.unsqueeze(1).expand(X.shape[:2])
    elif valid_lens.shape == X.shape[:2]:
        lens = valid_lens
    else:
        raise ValueError("wrong shape of valid_lens")
    lens = lens.to(device=X.device, dtype=torch.float64)
    if bool((lens > X.shape[2]).any()):
        raise ValueError("a length is too large")
    if X.numel() == 0:
        return X.clone()
    return vmap(vmap(_row))(X, lens)
