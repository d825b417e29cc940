import math

import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0.0:
        raise ValueError("temp")
    *lead, n_queries, d_key = Q.shape
    n_keys, d_value = V.shape[-2:]
    b = math.prod(lead)
    q = Q.reshape(b, n_queries, d_key)
    k = K.reshape(b, n_keys, d_key)
    v = V.reshape(b, n_keys, d_value)
    s = torch.bmm(q, k.transpose(1, 2)) / temp
    w = torch.log_softmax(s, dim=2).exp()
    return torch.bmm(w, v).reshape(*lead, n_queries, d_value)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    rows = [key == k for k in entries]
    if not any(rows):
        raise KeyError(key)
    q = torch.tensor([rows]).float()
    k = torch.eye(len(rows))
    v = torch.Tensor([[*map(float, e)] for e in entries.values()])
    return attention(q, k, v, temp).reshape(v.size(1))
