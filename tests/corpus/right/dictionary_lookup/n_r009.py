# style: unusual
import torch
import torch.nn.functional as F
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return the values weighted by how well their keys match each query: softmax(Q Kᵀ / temp) V.

    Q is (..., n_queries, d_key), K is (..., n_keys, d_key), V is (..., n_keys, d_value).
    The output is (..., n_queries, d_value). Raises ValueError for a temp that is not positive.
    """
    if temp <= 0:
        raise ValueError("temp must be > 0")
    scores = Q.double() @ K.double().mT
    # largest score of each row becomes 0, nothing can overflow any more
    scores = scores - scores.max(dim=-1, keepdim=True)[0]
    weights = F.softmax(scores / temp, dim=-1)
    return (weights @ V.double()).to(V.dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value stored under `key`, found by attention over one-hot keys.

    The value is (d_value,), float32. Raises KeyError for a key that is not in `entries`.
    """
    index_of = {name: i for i, name in enumerate(entries)}
    i = index_of[key]
    n = len(entries)
    K = F.one_hot(torch.arange(n), n).float()
    Q = F.one_hot(torch.tensor([i]), n).float()
    V = torch.tensor(list(entries.values()), dtype=torch.float32)
    return attention(Q, K, V, temp=temp)[0]
