# mistake: weights_transposed
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return the values weighted by how well their keys match each query: softmax(Q Kᵀ / temp) V.

    Q is (..., n_queries, d_key), K is (..., n_keys, d_key), V is (..., n_keys, d_value).
    The output is (..., n_queries, d_value). Raises ValueError for a temp that is not positive.
    """
    if temp <= 0:
        raise ValueError(f"temp is {temp}, but it has to be positive")
    scores = Q @ K.transpose(-2, -1)  # (..., n_queries, n_keys)
    weights = torch.softmax(scores / temp, dim=-1).mT  # (..., n_queries, n_keys)
    return weights @ V  # (..., n_queries, d_value)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value stored under `key`, found by attention over one-hot keys.

    The value is (d_value,), float32. Raises KeyError for a key that is not in `entries`.
    """
    if key not in entries:
        raise KeyError(key)
    place = list(entries).index(key)
    K = torch.eye(len(entries))  # (n_keys, n_keys), row i is the key of entry i
    V = torch.tensor(list(entries.values()), dtype=torch.float32)  # (n_keys, d_value)
    Q = K[place : place + 1]  # (1, n_keys)
    return attention(Q, K, V, temp).squeeze(0)  # (d_value,)
