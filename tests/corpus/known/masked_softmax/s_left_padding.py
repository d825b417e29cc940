# mistake: last_keys_valid
import torch
from torch import Tensor


def _broadcast_lens(valid_lens, batch, n_queries):
    if valid_lens.ndim == 1 and len(valid_lens) == batch:
        return valid_lens.view(batch, 1, 1) if valid_lens.is_contiguous() else valid_lens.reshape(batch, 1, 1)
    if valid_lens.ndim == 2 and valid_lens.shape == (batch, n_queries):
        return valid_lens.unsqueeze(-1)
    raise ValueError("valid_lens does not fit X")


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return X.softmax(-1)
    n = X.size(-1)
    lens = _broadcast_lens(valid_lens, X.size(0), X.size(1))
    if lens.gt(n).any():
        raise ValueError("valid_lens exceeds n_keys")
    start = n - torch.ceil(lens.double())
    invalid = torch.arange(n, device=X.device) < start
    scores = X.masked_fill(invalid, float("-inf"))
    empty = invalid.all(dim=-1, keepdim=True)
    scores = scores.masked_fill(empty, 0.0)
    return scores.softmax(-1).masked_fill(empty, 0.0)
