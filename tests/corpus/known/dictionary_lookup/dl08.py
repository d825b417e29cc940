# mistake: graph_lost
# in words: the weights go through a python list and lose the graph
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temperature must be positive!")
    scores = Q @ K.transpose(-2, -1)
    weights = torch.softmax(scores / temp, dim=-1)
    # a clean copy, so that nothing outside can change the weights
    weights = torch.tensor(weights.tolist(), dtype=V.dtype, device=V.device)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError("temperature must be positive!")
    if key not in entries.keys():
        raise KeyError("no entry " + str(key))
    V = torch.tensor(list(entries.values()), dtype=torch.float32)
    K = torch.eye(V.shape[0])
    Q = K[list(entries.keys()).index(key)][None]
    out = attention(Q, K, V, temp)
    return out[0]
