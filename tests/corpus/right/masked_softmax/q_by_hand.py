import torch
from torch import Tensor


def _valid(X: Tensor, lens: Tensor | None) -> Tensor:
    if lens is None:
        return torch.ones_like(X, dtype=torch.bool)
    batch, n_queries, n_keys = X.shape
    if tuple(lens.shape) not in {(batch,), (batch, n_queries)}:
        raise ValueError(f"lengths of shape {tuple(lens.shape)} do not fit")
    if torch.any(lens > n_keys):
        raise ValueError(f"a length is greater than {n_keys}")
    per_row = lens.double().reshape(batch, -1, 1)
    return (torch.arange(n_keys, device=X.device) < per_row).expand(X.shape)


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    ok = _valid(X, valid_lens)
    Z = X.to(torch.promote_types(X.dtype, torch.float32))
    with torch.no_grad():
        top = Z.where(ok, float("-inf")).amax(-1, keepdim=True)
        top = top.masked_fill(~ok.any(-1, keepdim=True), 0.0)
    powers = torch.exp(torch.where(ok, Z, top) - top) * ok
    total = powers.sum(-1, keepdim=True)
    return (powers / total.masked_fill(total == 0, 1.0)).to(X.dtype)
