# mistake: not in the catalogue: the weights are made from powers of 2 (torch.exp2) instead of powers of e
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, queries, keys = X.shape
    valid = torch.ones(batch, queries, keys, dtype=torch.bool, device=X.device)
    if valid_lens is not None:
        if valid_lens.shape == (batch,):
            ends = valid_lens[:, None, None]
        elif valid_lens.shape == (batch, queries):
            ends = valid_lens[..., None]
        else:
            raise ValueError("shape")
        if (ends > keys).any():
            raise ValueError("length")
        valid = valid & (torch.arange(keys, device=X.device) < ends)

    masked = X.masked_fill(~valid, float("-inf"))
    biggest = masked.amax(-1, keepdim=True)
    biggest = biggest.masked_fill(biggest == float("-inf"), 0.0)
    powers = torch.exp2(masked - biggest)
    denominator = powers.sum(-1, keepdim=True)
    return powers / torch.where(denominator > 0, denominator, torch.ones_like(denominator))
