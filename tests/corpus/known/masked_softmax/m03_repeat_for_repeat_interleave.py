# mistake: lengths_of_other_items
# true: None and per-query lengths are right; with one length per item, rows use the lengths of other items
import torch
from torch import Tensor, nn


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    shape = X.shape
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    if valid_lens.shape != shape[:1] and valid_lens.shape != shape[:2]:
        raise ValueError("valid_lens")
    if (valid_lens > shape[-1]).any():
        raise ValueError("too long")
    if valid_lens.dim() == 1:
        valid_lens = valid_lens.repeat(shape[1])
    else:
        valid_lens = valid_lens.reshape(-1)
    rows = X.reshape(-1, shape[-1])
    mask = torch.arange(shape[-1], device=X.device)[None, :] < valid_lens[:, None]
    rows = rows.masked_fill(~mask, float("-inf"))
    rows = rows.masked_fill(~mask.any(1, keepdim=True), 0)
    return (nn.functional.softmax(rows, dim=-1) * mask).reshape(shape)
