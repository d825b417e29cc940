import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    n_keys = X.shape[-1]
    position = torch.ones_like(X, dtype=torch.long).cumsum(-1) - 1     # 0, 1, 2, ...
    if valid_lens is None:
        mask = torch.ones_like(X, dtype=torch.bool)
    else:
        if valid_lens.shape not in (X.shape[:1], X.shape[:2]):
            raise ValueError("shape of valid_lens does not fit X")
        if (valid_lens > n_keys).sum() > 0:
            raise ValueError("too long")
        per_query = valid_lens if valid_lens.ndim == 2 else valid_lens[:, None]
        mask = position < per_query[..., None]
    hidden = X.masked_fill(mask.logical_not(), -torch.inf)
    # an empty row would give nan: give it any finite scores, and zero it afterwards
    hidden = hidden.masked_fill(~mask.any(-1, keepdim=True), 1.0)
    hidden = hidden - hidden.amax(-1, keepdim=True).detach()
    log_w = hidden - hidden.logsumexp(-1, keepdim=True)
    return log_w.exp().masked_fill(~mask, 0.0)
