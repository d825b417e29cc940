# mistake: not in the catalogue: The weight that the padded keys had in a plain softmax is shared out evenly among the valid keys.
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Softmax over the keys; padding gets nothing and each row sums to 1."""
    weights = torch.softmax(X, dim=-1)
    if valid_lens is None:
        return weights
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape == (batch,):
        lens = valid_lens.reshape(batch, 1, 1)
    elif valid_lens.shape == (batch, n_queries):
        lens = valid_lens.reshape(batch, n_queries, 1)
    else:
        raise ValueError("valid_lens has a wrong shape")
    if (lens > n_keys).any():
        raise ValueError("valid_lens is longer than the keys")
    valid = (torch.arange(n_keys, device=X.device) < lens).to(X.dtype)
    kept = weights * valid
    # what was taken away from the padding goes back to the real keys
    lost = 1 - kept.sum(dim=-1, keepdim=True)
    number = valid.sum(dim=-1, keepdim=True).clamp(min=1)
    return kept + valid * lost / number
