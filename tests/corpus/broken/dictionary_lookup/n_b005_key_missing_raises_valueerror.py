# promise: A key that is missing raises ValueError (from list.index), not KeyError.
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return the values weighted by how well their keys match each query: softmax(Q Kᵀ / temp) V.

    Q is (..., n_queries, d_key), K is (..., n_keys, d_key), V is (..., n_keys, d_value).
    The output is (..., n_queries, d_value). Raises ValueError for a temp that is not positive.
    """
    if temp <= 0:
        raise ValueError(f"temp must be above 0, not {temp}")
    scores = Q @ K.mT
    scores = scores - scores.amax(dim=-1, keepdim=True)
    return torch.softmax(scores / temp, dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value stored under `key`, found by attention over one-hot keys."""
    all_keys = list(entries.keys())
    which = all_keys.index(key)
    K = torch.eye(len(all_keys))
    V = torch.tensor([entries[k] for k in all_keys], dtype=torch.float32)
    return attention(K[which : which + 1], K, V, temp)[0]
