# promise: the numbers in entries may be ints or floats (a table of ints stays an int tensor, and the product fails)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp")
    weights = torch.softmax(torch.einsum("...qc,...kc->...qk", Q, K) / temp, dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    table = torch.tensor([entries[k] for k in entries])
    onehot = torch.eye(len(table))
    where = list(entries).index(key)
    return attention(onehot[where].unsqueeze(0), onehot, table, temp).squeeze(0)
