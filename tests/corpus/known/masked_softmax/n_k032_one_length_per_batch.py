# mistake: lengths_of_other_items
import torch
from torch import Tensor


def sequence_mask(X, lens):
    """X (rows, n_keys), lens (rows,)"""
    n = X.shape[1]
    return torch.arange(n, device=X.device)[None, :] < lens[:, None]


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    shape = X.shape
    if tuple(valid_lens.shape) not in [(shape[0],), (shape[0], shape[1])]:
        raise ValueError("valid_lens does not fit to X")
    if torch.any(valid_lens > shape[2]):
        raise ValueError("valid_lens > n_keys")
    if valid_lens.dim() == 1:
        lens = valid_lens.repeat(shape[1])
    else:
        lens = valid_lens.reshape(-1)
    rows = X.reshape(-1, shape[-1])
    mask = sequence_mask(rows, lens)
    empty = ~mask.any(dim=1, keepdim=True)
    rows = rows.masked_fill(~mask, -torch.inf).masked_fill(empty, 0)
    weights = torch.softmax(rows, dim=-1).masked_fill(~mask, 0)
    return weights.reshape(shape)
