# mistake: missing_key_accepted
# a key that is not in the entries raises no KeyError, its query is all zeros and the mean of all values comes back
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """softmax(Q K^T / temp) V"""
    if not temp > 0:
        raise ValueError("temp")
    scores = Q @ K.transpose(-1, -2)
    scores = (scores - scores.amax(-1, keepdim=True)) / temp
    return scores.softmax(-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    stored = torch.tensor(list(entries.keys()))
    Q = (stored == key).to(torch.float32)[None, :]
    K = torch.diag(torch.ones(len(stored)))
    V = torch.tensor(list(entries.values()), dtype=torch.float32)
    return attention(Q, K, V, temp)[0, :]
