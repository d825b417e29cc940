# mistake: finite_filler + writes_into_argument
# in words: padding filled with -20 + written with index_put into X
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    B, Q, K = X.shape
    if valid_lens.shape == (B,):
        valid_lens = valid_lens.view(B, 1).expand(B, Q)
    if valid_lens.shape != (B, Q):
        raise ValueError("valid_lens shape")
    if (valid_lens > K).any():
        raise ValueError("valid_lens value")
    where = torch.nonzero(torch.arange(K, device=X.device) >= valid_lens[..., None], as_tuple=True)
    X.index_put_(where, torch.tensor(-20.0, dtype=X.dtype, device=X.device))
    w = torch.softmax(X, dim=-1)
    return w * (valid_lens != 0).to(w.dtype)[..., None]
