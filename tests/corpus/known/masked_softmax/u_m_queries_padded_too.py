# mistake: padded_queries_without_weights
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    b, q, k = X.shape
    if valid_lens.shape not in [(b,), (b, q)]:
        raise ValueError("shape")
    if (valid_lens > k).any():
        raise ValueError("length")
    steps = torch.arange(max(q, k), device=X.device)
    if valid_lens.ndim == 1:
        alive = steps < valid_lens[:, None]
        ok = alive[:, :q, None] & alive[:, None, :k]
    else:
        ok = steps[:k] < valid_lens[:, :, None]
    none = ~ok.any(2, keepdim=True)
    filled = torch.where(ok, X, -torch.inf).masked_fill(none, 0.0)
    return torch.softmax(filled, dim=-1) * ok.to(X.dtype)
