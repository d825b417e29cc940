# mistake: masked_after_softmax + lengths_of_items_on_queries
# in words: weights zeroed after the softmax + one length per item compared with the query index
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    soft = X.softmax(-1)
    if valid_lens is None:
        return soft
    if valid_lens.shape not in [X.shape[:1], X.shape[:2]]:
        raise ValueError("valid_lens must have shape (batch,) or (batch, n_queries)")
    if valid_lens.gt(X.shape[-1]).any():
        raise ValueError("valid_lens must be at most n_keys")
    if valid_lens.ndim == 1:
        axis, lens = -2, valid_lens[:, None, None]
        index = torch.arange(X.shape[axis], device=X.device)[:, None]
    else:
        axis, lens = -1, valid_lens[:, :, None]
        index = torch.arange(X.shape[axis], device=X.device)
    return soft * (index < lens)
