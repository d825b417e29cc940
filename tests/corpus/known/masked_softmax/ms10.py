# mistake: off_by_one
# in words: one key too many counts as valid
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.ndim == 1:
        lens = valid_lens.view(-1, 1).expand(-1, X.shape[1])
    else:
        lens = valid_lens
    if lens.shape != X.shape[:-1]:
        raise ValueError("shape mismatch")
    if (lens > X.shape[-1]).any():
        raise ValueError("length too large")
    # running position of each key, compared with its length
    position = torch.ones_like(X, dtype=torch.int64).cumsum(-1) - 1
    drop = position.gt(lens.unsqueeze(-1)) | lens.eq(0).unsqueeze(-1)
    scores = X.masked_fill(drop, float("-inf"))
    return scores.softmax(-1).masked_fill(drop, 0.0)
