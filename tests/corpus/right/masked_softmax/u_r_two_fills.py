# right: masked_fill with minus infinity, empty rows filled with 0 first, padded weights filled with 0 at the end.
import torch
import torch.nn.functional as F
from torch import Tensor


def _padding(X: Tensor, lens: Tensor) -> Tensor:
    batch, n_queries, n_keys = X.shape
    match list(lens.shape):
        case [n] if n == batch:
            lens = lens[:, None]
        case [n, m] if (n, m) == (batch, n_queries):
            pass
        case other:
            raise ValueError(f"valid_lens cannot have the shape {other}")
    lens = lens.to(X.device).to(torch.float64)
    if lens.gt(n_keys).any().item():
        raise ValueError("valid_lens exceeds n_keys")
    position = torch.arange(n_keys, device=X.device, dtype=torch.float64)
    return position >= lens.unsqueeze(-1)


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    padded = _padding(X, valid_lens).expand(X.shape)
    nothing = padded.all(dim=-1, keepdim=True)
    safe = X.masked_fill(padded, -torch.inf).masked_fill(nothing, 0.0)
    return F.softmax(safe, dim=-1).masked_fill(padded, 0.0)
