# mistake: divided_by_temp_twice
# in words: divides by temp a second time inside the softmax helper
# true: right at temp 1; elsewhere the weights are those of temp squared
import torch
from torch import Tensor


def _weights(logits, temp):
    z = logits / temp
    z = z - z.amax(dim=-1, keepdim=True)
    num = (z / temp).exp()
    return num / num.sum(dim=-1, keepdim=True)


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp <= 0")
    return _weights(Q @ K.transpose(-1, -2), temp) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    keys = [*entries]
    if key not in keys:
        raise KeyError(key)
    eye = torch.eye(len(keys))
    mat = torch.stack([torch.tensor(entries[k], dtype=torch.float32) for k in keys])
    which = keys.index(key)
    return attention(eye[which : which + 1], eye, mat, temp)[0]
