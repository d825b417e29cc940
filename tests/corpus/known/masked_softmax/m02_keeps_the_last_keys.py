# mistake: last_keys_valid
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return X.softmax(-1)
    B, Q, N = X.shape
    if tuple(valid_lens.shape) not in {(B,), (B, Q)}:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if torch.any(valid_lens > N):
        raise ValueError("valid_lens too long")
    L = valid_lens[:, None, None] if valid_lens.ndim == 1 else valid_lens[:, :, None]
    pos = torch.arange(N, device=X.device)
    mask = (pos >= N - L).expand(B, Q, N)
    X = torch.where(mask, X, torch.full_like(X, -torch.inf))
    X = torch.where(mask.any(-1, keepdim=True), X, torch.zeros_like(X))
    return torch.softmax(X, -1) * mask
