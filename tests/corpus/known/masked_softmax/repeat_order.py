# mistake: lengths_of_other_items
# lengths per batch item are tiled with repeat instead of repeat_interleave, so rows get the lengths of other batch items
import torch
from torch import Tensor, nn


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    shape = X.shape
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    if valid_lens.dim() == 1:
        if valid_lens.shape[0] != shape[0]:
            raise ValueError("one length per batch item expected")
        flat = valid_lens.repeat(shape[1])
    elif valid_lens.dim() == 2:
        if valid_lens.shape != shape[:2]:
            raise ValueError("one length per query expected")
        flat = valid_lens.reshape(-1)
    else:
        raise ValueError("valid_lens has too many or too few axes")
    if torch.any(flat > shape[2]):
        raise ValueError("length exceeds n_keys")
    rows = X.reshape(-1, shape[-1])
    mask = torch.arange(shape[-1], device=X.device)[None, :] < flat[:, None]
    empty = ~mask.any(dim=1, keepdim=True)
    rows = rows.masked_fill(~mask & ~empty, float("-inf")).masked_fill(empty, 0.0)
    out = nn.functional.softmax(rows, dim=-1).masked_fill(~mask, 0.0)
    return out.reshape(shape)
