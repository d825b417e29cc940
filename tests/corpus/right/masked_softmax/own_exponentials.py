# right: softmax by hand in float64, mask by a running count
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for padded keys."""
    batch, n_queries, n_keys = X.shape
    full = torch.full((batch, n_queries), float(n_keys), dtype=torch.float64, device=X.device)
    if valid_lens is not None:
        if list(valid_lens.shape) not in ([batch], [batch, n_queries]):
            raise ValueError("shape of valid_lens")
        given = valid_lens.detach().to(torch.float64)
        if bool(torch.any(given > n_keys)):
            raise ValueError("length too large")
        full = full * 0 + (given.unsqueeze(1) if given.ndim == 1 else given)
    count = torch.ones_like(X, dtype=torch.float64).cumsum(dim=2) - 1
    keep = count.lt(full.unsqueeze(2))
    wide = torch.where(keep, X.to(torch.float64), torch.tensor(-torch.inf, dtype=torch.float64))
    top = wide.detach().amax(dim=2, keepdim=True).clamp(min=-1e300)
    safe = torch.where(keep, X.to(torch.float64) - top, 0.0)
    raised = safe.exp() * keep
    return (raised / raised.sum(dim=2, keepdim=True).clamp(min=0.5)).to(X.dtype)
