# promise: X is not modified (with None, the maximum is subtracted in place)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        with torch.no_grad():
            X -= X.max(dim=-1, keepdim=True).values
        return torch.softmax(X, dim=-1)
    b, q, n = X.shape
    if valid_lens.shape == (b,):
        limit = valid_lens[:, None].expand(b, q)
    elif valid_lens.shape == (b, q):
        limit = valid_lens
    else:
        raise ValueError("limit")
    if (limit > n).any():
        raise ValueError("limit too large")
    ok = torch.arange(n, device=X.device) < limit[..., None]
    Y = X.masked_fill(~ok, -torch.inf).masked_fill((limit <= 0)[..., None], 0)
    return torch.where(ok, Y.softmax(-1), 0.0)
