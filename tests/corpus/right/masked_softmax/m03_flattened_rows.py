import torch
from torch import Tensor, nn


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    shape = X.shape
    if valid_lens.shape == shape[:1]:
        rows = torch.repeat_interleave(valid_lens, shape[1])
    elif valid_lens.shape == shape[:2]:
        rows = valid_lens.reshape(-1)
    else:
        raise ValueError("valid_lens has the wrong shape")
    if (rows > shape[2]).any():
        raise ValueError("valid_lens exceeds the number of keys")
    flat = X.reshape(-1, shape[-1]).clone()
    padded = torch.arange(shape[-1], device=X.device)[None, :] >= rows[:, None]
    flat[padded] = float("-inf")
    empty = padded.all(dim=1)
    flat[empty] = 0.0
    weights = nn.functional.softmax(flat, dim=-1)
    return weights.masked_fill(padded, 0.0).reshape(shape)
