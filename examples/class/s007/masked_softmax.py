import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return X.softmax(dim=-1)
    allowed_shapes = (X.shape[:1], X.shape[:2])
    if valid_lens.shape not in allowed_shapes:
        raise ValueError(f"valid_lens must have one of the shapes {allowed_shapes}")
    if torch.any(valid_lens > X.shape[-1]):
        raise ValueError("valid_lens is larger than n_keys")
    lens = valid_lens.view(X.shape[0], -1, 1)
    invalid = torch.arange(X.shape[-1]) >= lens
    return X.masked_fill(invalid, -torch.inf).softmax(dim=-1).masked_fill(invalid, 0)
