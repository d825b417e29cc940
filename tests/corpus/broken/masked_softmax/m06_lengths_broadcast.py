# promise: a valid_lens of any other shape raises ValueError (anything that broadcasts, such as (1,) or (batch, 1), is accepted)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, k = X.shape
    if valid_lens is None:
        return X.softmax(-1)
    lens = valid_lens
    if lens.ndim == 1:
        lens = lens[:, None]
    try:
        lens = lens.expand(b, q)
    except RuntimeError:
        raise ValueError("valid_lens does not fit X") from None
    if lens.gt(k).any():
        raise ValueError("valid_lens is too large")
    mask = torch.arange(k, device=X.device)[None, None, :] < lens[:, :, None]
    rows = mask.any(dim=2, keepdim=True)
    w = X.masked_fill(~mask & rows, -torch.inf)
    w = w.masked_fill(~rows, 0.0)
    return torch.softmax(w, dim=2).masked_fill(~mask, 0.0)
