# mistake: distances_for_products
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive.")
    diff = Q.unsqueeze(-2) - K.unsqueeze(-3)  # (..., n_queries, n_keys, d_key)
    match = -(diff**2).sum(-1)
    alpha = torch.softmax(match / temp, -1)
    return (alpha.unsqueeze(-1) * V.unsqueeze(-3)).sum(-2)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    hits = [float(k == key) for k in entries]
    if not any(hits):
        raise KeyError(key)
    q = torch.tensor(hits).reshape(1, -1)
    k = torch.diag(torch.ones(len(hits)))
    v = torch.tensor(list(entries.values()), dtype=torch.float32)
    (answer,) = attention(q, k, v, temp)
    return answer
