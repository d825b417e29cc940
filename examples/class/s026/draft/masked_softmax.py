import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)

    b, q, k = X.shape
    if tuple(valid_lens.shape) == (b,):
        lengths = valid_lens[:, None, None]
    elif tuple(valid_lens.shape) == (b, q):
        lengths = valid_lens[:, :, None]
    else:
        raise ValueError("valid_lens has to be (batch,) or (batch, n_queries)")
    if torch.any(valid_lens > k):
        raise ValueError("there are fewer keys than a valid length says")

    padding = torch.arange(k) >= lengths
    return torch.softmax(X.masked_fill(padding, -1e6), dim=-1)
