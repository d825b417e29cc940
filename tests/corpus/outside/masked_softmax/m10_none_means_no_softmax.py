# mistake: when valid_lens is None the scores are returned without any softmax
# true: right with lengths; with None the output is the scores themselves
import torch
import torch.nn.functional as F
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Softmax over the last axis, masked by valid_lens."""
    if valid_lens is None:
        return X.clone()
    if valid_lens.shape == X.shape[:1]:
        lens = valid_lens.reshape(-1, 1, 1)
    elif valid_lens.shape == X.shape[:2]:
        lens = valid_lens.unsqueeze(2)
    else:
        raise ValueError("shape mismatch")
    if (lens > X.shape[2]).any():
        raise ValueError("lens > n_keys")
    idx = torch.arange(X.shape[2], device=X.device).view(1, 1, -1)
    pad = (idx >= lens).expand(X.shape)
    alive = ~pad.all(dim=2, keepdim=True)
    filled = X.masked_fill(pad & alive, float("-inf"))
    return F.softmax(filled, dim=2) * (~pad)
