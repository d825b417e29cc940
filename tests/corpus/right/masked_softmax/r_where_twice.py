import torch
from torch import Tensor


def _lengths_as_table(valid_lens: Tensor, batch: int, n_queries: int) -> Tensor:
    """(batch, n_queries or 1, 1), in double, so that any int or float compares exactly."""
    if valid_lens.shape == (batch,):
        table = valid_lens[:, None, None]
    elif valid_lens.shape == (batch, n_queries):
        table = valid_lens[:, :, None]
    else:
        raise ValueError(f"valid_lens has the shape {tuple(valid_lens.shape)}")
    return table.to(torch.float64)


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return X.softmax(dim=-1)

    batch, n_queries, n_keys = X.shape
    lens = _lengths_as_table(valid_lens, batch, n_queries)
    if (lens > n_keys).any():
        raise ValueError("a length is greater than the number of keys")

    real = torch.arange(n_keys, device=X.device) < lens
    nothing = ~real.any(dim=-1, keepdim=True)
    # A row with no key at all gets zeros as scores (a harmless softmax), then loses its weights.
    scores = torch.where(real | nothing, X.masked_fill(~real, 0), float("-inf"))
    return torch.where(real, scores.softmax(dim=-1), 0.0)
