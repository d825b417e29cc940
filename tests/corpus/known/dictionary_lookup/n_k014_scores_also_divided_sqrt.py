# mistake: scaled_by_root_of_d_key
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return the values weighted by how well their keys match each query: softmax(Q Kᵀ / temp) V.

    Q is (..., n_queries, d_key), K is (..., n_keys, d_key), V is (..., n_keys, d_value).
    The output is (..., n_queries, d_value). Raises ValueError for a temp that is not positive.
    """
    if temp <= 0:
        raise ValueError("The temperature must be positive.")

    d_k = Q.size(-1)
    scores = torch.matmul(Q, K.transpose(-2, -1)) / (d_k**0.5)
    attn = torch.softmax(scores / temp, dim=-1)
    return torch.matmul(attn, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value stored under `key`, found by attention over one-hot keys.

    The value is (d_value,), float32. Raises KeyError for a key that is not in `entries`.
    """
    if key not in entries:
        raise KeyError(f"{key} is not in entries")

    ids = {k: i for i, k in enumerate(entries)}
    K = torch.eye(len(ids))
    V = torch.tensor([list(map(float, v)) for v in entries.values()])
    Q = K[ids[key]][None, :]
    return attention(Q, K, V, temp)[0]
