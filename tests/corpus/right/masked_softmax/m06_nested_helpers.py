import torch
import torch.nn.functional as F
from torch import Tensor


def length_mask(lens: Tensor, size: int) -> Tensor:
    return torch.arange(size, device=lens.device).lt(lens.unsqueeze(-1))


def safe_softmax(X: Tensor, mask: Tensor) -> Tensor:
    rows_with_keys = mask.any(dim=-1, keepdim=True)
    filled = X.masked_fill(~(mask | ~rows_with_keys), float("-inf"))
    filled = torch.where(rows_with_keys, filled, torch.zeros_like(filled))
    return F.softmax(filled, dim=-1) * rows_with_keys


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, n_queries, n_keys = X.size()
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    if valid_lens.size() == torch.Size([batch]):
        lens = valid_lens[:, None].repeat(1, n_queries)
    elif valid_lens.size() == torch.Size([batch, n_queries]):
        lens = valid_lens
    else:
        raise ValueError("valid_lens: unexpected size")
    if not (lens <= n_keys).all():
        raise ValueError("valid_lens: longer than the keys")
    return safe_softmax(X, length_mask(lens, n_keys))
