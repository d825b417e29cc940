import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp <= 0")
    dtype = V.dtype
    work = dtype if dtype in (torch.float32, torch.float64) else torch.float32
    q, k, v = Q.to(work), K.to(work), V.to(work)
    s = q @ k.mT
    s = s - s.amax(dim=-1, keepdim=True)
    e = torch.exp(s / temp)
    w = e / e.sum(dim=-1, keepdim=True)
    return (w @ v).to(dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries.keys():
        raise KeyError(f"no entry {key}")
    known = torch.tensor(list(entries.keys()))
    values = torch.tensor(list(entries.values())).to(torch.float32)
    query = (known == key).to(torch.float32)[None, :]
    keys = (known[:, None] == known[None, :]).to(torch.float32)
    return attention(query, keys, values, temp)[0]
