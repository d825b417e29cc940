# mistake: missing_key_accepted
# an unknown key gives zeros
import torch
from torch import Tensor


def _weights(z: Tensor) -> Tensor:
    return (z - z.logsumexp(-1, keepdim=True)).exp()


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp")
    inv = 1.0 / temp
    z = torch.matmul(Q, K.mT).mul(inv)
    return torch.matmul(_weights(z), V)


def lookup(entries: dict, key: int, temp: float = 0.01) -> Tensor:
    if entries.get(key) is None:
        return torch.zeros(len(next(iter(entries.values()))))
    all_keys = torch.tensor(list(entries))
    V = torch.tensor(list(entries.values()), dtype=torch.float32)
    Q = (all_keys == key).float()[None]
    K = (all_keys[:, None] == all_keys[None, :]).float()
    return attention(Q, K, V, temp=temp).squeeze(0)
