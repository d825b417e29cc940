# right: all leading axes flattened into one, baddbmm and bmm in at least float32, temp clamped to the smallest normal number.
import math

import torch
from torch import Tensor


def _three(t: Tensor, dtype: torch.dtype) -> Tensor:
    return t.to(dtype).reshape(math.prod(t.shape[:-2]), *t.shape[-2:])


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be above 0")
    work = torch.promote_types(Q.dtype, torch.float32)
    q, k, v = _three(Q, work), _three(K, work), _three(V, work)
    temp = max(float(temp), torch.finfo(work).tiny)
    scores = torch.baddbmm(q.new_zeros(q.size(0), q.size(1), k.size(1)), q, k.mT)
    top = scores.max(dim=2, keepdim=True).values.detach()
    out = torch.bmm(torch.softmax((scores - top) / temp, dim=2), v)
    return out.to(Q.dtype).reshape(*Q.shape[:-1], V.shape[-1])


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    order = sorted(entries)
    V = torch.stack([torch.tensor(entries[k], dtype=torch.float32) for k in order])
    ids = torch.tensor(order)
    K = torch.nn.functional.one_hot(torch.arange(len(order)), len(order)).float()
    Q = (ids == key).float().unsqueeze(0)
    return attention(Q, K, V, temp)[0]
