# mistake: temp_of_zero_allowed
import torch
from torch import Tensor


def _weights(scores: Tensor) -> Tensor:
    return (scores - scores.logsumexp(-1, keepdim=True)).exp()


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp < 0:
        raise ValueError("temp")
    scores = torch.matmul(Q, K.mT).div(temp)
    return torch.matmul(_weights(scores), V)


def lookup(entries: dict, key: int, temp: float = 0.01) -> Tensor:
    if entries.get(key) is None:
        raise KeyError(key)
    all_keys = torch.tensor(list(entries))
    V = torch.tensor(list(entries.values()), dtype=torch.float32)
    Q = (all_keys == key).float()[None]
    K = (all_keys[:, None] == all_keys[None, :]).float()
    return attention(Q, K, V, temp=temp).squeeze(0)
