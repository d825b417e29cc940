# right: a class for the lengths, all rows flattened to two axes, log weights
import torch
from torch import Tensor


class Lengths:
    """One length for each row of scores."""

    def __init__(self, lens: Tensor, batch: int, n_queries: int, n_keys: int):
        if lens.ndim == 1 and lens.numel() == batch:
            self.rows = lens.double().repeat_interleave(n_queries)
        elif lens.ndim == 2 and lens.size(0) == batch and lens.size(1) == n_queries:
            self.rows = lens.double().reshape(-1)
        else:
            raise ValueError("lengths do not fit the scores")
        if self.rows.numel() and self.rows.max() > n_keys:
            raise ValueError("a sentence is longer than n_keys")
        self.n_keys = n_keys

    def padded(self) -> Tensor:
        place = torch.arange(self.n_keys, dtype=torch.float64, device=self.rows.device)
        return torch.ge(place[None, :], self.rows[:, None])


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for padded keys."""
    flat = X.reshape(-1, X.size(2))
    if valid_lens is None:
        return flat.log_softmax(dim=1).exp().reshape(X.shape)
    padded = Lengths(valid_lens, *X.shape).padded()
    nothing = padded.all(dim=1)
    hidden = padded & ~nothing[:, None]
    flat = flat.masked_fill(nothing[:, None], 0)
    flat = flat.masked_fill(hidden, -torch.inf)
    weights = flat.softmax(dim=1)
    return torch.where(padded, torch.zeros_like(weights), weights).reshape(X.shape)
