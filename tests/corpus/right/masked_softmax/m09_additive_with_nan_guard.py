import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    keys = X.shape[2]
    if valid_lens is None:
        lens = torch.full(X.shape[:2], keys, device=X.device)
    elif valid_lens.dim() == 1 and len(valid_lens) == X.shape[0]:
        lens = torch.stack([valid_lens] * 1, dim=1).expand(X.shape[:2])
    elif valid_lens.dim() == 2 and valid_lens.shape == X.shape[:2]:
        lens = valid_lens
    else:
        raise ValueError("valid_lens must have one or two axes, the first of X")
    if lens.gt(keys).any():
        raise ValueError("no more valid keys than keys, please")
    pad = torch.arange(keys, device=X.device).expand_as(X) >= lens[:, :, None]
    void = pad.all(2, keepdim=True)
    bias = torch.zeros_like(X).masked_fill_(pad & ~void, -torch.inf)
    # replace padded scores first: inf - inf would be nan
    weights = (X.masked_fill(pad, 0.0) + bias).softmax(dim=2)
    return torch.where(pad, torch.zeros_like(weights), weights)
