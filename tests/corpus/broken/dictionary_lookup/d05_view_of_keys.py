# promise: inputs may be views, such as transposed tensors (view fails on a key tensor that is not contiguous)
import math
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(temp)
    lead = Q.shape[:-2]
    b = math.prod(lead)
    q = Q.reshape(b, *Q.shape[-2:])
    k = K.view(-1, K.shape[-1]).unflatten(0, (b, -1))
    v = V.reshape(b, *V.shape[-2:])
    w = torch.softmax(torch.einsum("bqd,bkd->bqk", q, k) / temp, dim=-1)
    return torch.einsum("bqk,bkv->bqv", w, v).reshape(*lead, Q.shape[-2], V.shape[-1])


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    keys = list(entries)
    if key not in keys:
        raise KeyError(key)
    table = torch.tensor([entries[k] for k in keys], dtype=torch.float32)
    eye = torch.eye(len(keys))
    return attention(eye[keys.index(key)].unsqueeze(0), eye, table, temp).squeeze(0)
