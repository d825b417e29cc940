# mistake: default_temp_of_the_lookup + transposed_all_axes
# in words: attention defaults to a sharp temp + K.T on batched keys
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be strictly positive")
    logits = torch.matmul(Q, K.T)
    return torch.matmul(torch.softmax(logits / temp, dim=-1), V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    n = len(entries)
    rank = {k: r for r, k in enumerate(sorted(entries))}
    query = torch.zeros(1, n)
    query[0, rank[key]] = 1.0
    values = torch.tensor([entries[k] for k in sorted(entries)], dtype=torch.float32)
    return attention(query, torch.eye(n), values, temp=temp)[0]
