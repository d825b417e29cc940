# mistake: lookup_ignores_temp
# in words: lookup checks temp but calls attention without it
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(f"bad temp {temp}")
    return torch.softmax(Q @ K.mT / temp, -1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError(f"bad temp {temp}")
    ids, vals = zip(*entries.items())
    if key not in ids:
        raise KeyError(key)
    n = len(ids)
    eye = torch.eye(n)
    args = dict(Q=eye[ids.index(key)].view(1, n), K=eye, V=torch.tensor(vals, dtype=torch.float32))
    return attention(**args).view(-1)
