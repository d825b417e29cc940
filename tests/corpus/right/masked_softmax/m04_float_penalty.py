import torch
from torch import Tensor


def _lengths(valid_lens, b, q, k):
    match list(valid_lens.shape):
        case [n] if n == b:
            out = valid_lens.reshape(b, 1, 1)
        case [n, m] if (n, m) == (b, q):
            out = valid_lens.reshape(b, q, 1)
        case other:
            raise ValueError(f"valid_lens cannot have shape {other}")
    if bool((out > k).any()):
        raise ValueError(f"valid_lens has an entry above {k}")
    return out


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Masked softmax in float32 or better."""
    b, q, k = X.shape
    work = X if X.dtype == torch.float64 else X.float()
    if valid_lens is None:
        return torch.softmax(work, dim=2).to(X.dtype)
    inside = torch.arange(k, device=X.device) < _lengths(valid_lens, b, q, k)
    inside = inside.expand(b, q, k)
    nothing = ~inside.any(dim=2, keepdim=True)
    work = work.masked_fill(~inside & ~nothing, -torch.inf).masked_fill(nothing, 0)
    out = torch.softmax(work, dim=2)
    return out.masked_fill(nothing, 0).to(X.dtype)
