# mistake: finite_filler
# in words: padding gets the score -20, not minus infinity
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    n = X.shape[-1]
    lens = torch.as_tensor(valid_lens)
    ok_shape = lens.shape == X.shape[:1] or lens.shape == X.shape[:2]
    if not ok_shape or (lens > n).any():
        raise ValueError("lengths do not fit the scores")
    while lens.dim() < 3:
        lens = lens.unsqueeze(-1)
    beyond = (torch.arange(n, device=X.device) >= lens).to(X.dtype)
    pushed_down = X.masked_fill(beyond.bool(), 0.0) - 20.0 * beyond
    w = torch.softmax(pushed_down, dim=-1)
    return w * (lens > 0)
