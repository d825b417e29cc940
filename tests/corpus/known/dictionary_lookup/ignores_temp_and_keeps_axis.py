# mistake: temp_ignored + lookup_keeps_the_query_axis
import torch
from torch.nn import functional as F


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError(temp)
    dims = Q.shape[:-2]
    Q_ = Q.reshape(-1, Q.shape[-2], Q.shape[-1])
    k = K.reshape(-1, K.shape[-2], K.shape[-1])
    v = V.reshape(-1, V.shape[-2], V.shape[-1])
    raw = torch.bmm(Q_, k.permute(0, 2, 1))
    a = F.softmax(raw, dim=2)
    result = torch.bmm(a, v)
    return result.reshape(dims + (Q.shape[-2], V.shape[-1]))


def lookup(entries, key, temp=0.01):
    where = {k: place for place, k in enumerate(entries)}
    index = where[key]  # KeyError if missing
    eye = torch.eye(len(entries))
    values = torch.stack([torch.tensor(v, dtype=torch.float) for v in entries.values()])
    return attention(eye[[index]], eye, values, temp)
