# promise: a temp of 0 or below raises ValueError in both functions (negative temps are accepted)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp == 0:
        raise ValueError("cannot divide by a temperature of zero")
    return (Q @ K.transpose(-1, -2) / temp).softmax(-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp == 0:
        raise ValueError("cannot divide by a temperature of zero")
    index = list(entries).index(key) if key in entries else None
    if index is None:
        raise KeyError(key)
    eye = torch.eye(len(entries))
    return attention(eye[index : index + 1], eye, torch.tensor(list(entries.values())).float(), temp)[0]
