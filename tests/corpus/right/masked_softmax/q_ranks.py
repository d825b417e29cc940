import torch
import torch.nn.functional as F
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return F.log_softmax(X, dim=2).exp()
    if valid_lens.shape == X.shape[:1]:
        counts = valid_lens.unsqueeze(1).expand(X.shape[:2])
    elif valid_lens.shape == X.shape[:2]:
        counts = valid_lens
    else:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if counts.gt(X.size(2)).any():
        raise ValueError("valid_lens exceeds the number of keys")
    # the first key has rank 1; a length of 2.5 lets ranks 1, 2 and 3 in
    ranks = torch.ones(X.shape, dtype=torch.long, device=X.device).cumsum(dim=2)
    real = ranks <= counts.to(torch.float64).ceil().unsqueeze(2)
    nothing = ~real.any(dim=2, keepdim=True)
    logits = X.masked_fill(~real, -torch.inf).masked_fill(nothing, 0.0)
    return F.log_softmax(logits, dim=2).exp().masked_fill(~real, 0.0)
