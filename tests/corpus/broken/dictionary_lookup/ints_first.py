# broken: "The numbers in entries may be ints or floats": if the first list holds only ints, the floats of the other lists are cut to ints
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(f"temp must be positive, not {temp}")
    scores = Q @ K.transpose(-2, -1)
    scores = scores - scores.amax(dim=-1, keepdim=True)
    weights = torch.softmax(scores / temp, dim=-1)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError(f"temp must be positive, not {temp}")
    if key not in entries:
        raise KeyError(key)
    names = list(entries)
    K = torch.eye(len(names))
    Q = K[names.index(key)][None]
    dtype = torch.tensor(entries[names[0]]).dtype
    V = torch.stack([torch.tensor(entries[name]).to(dtype) for name in names]).to(torch.float32)
    return attention(Q, K, V, temp)[0]
