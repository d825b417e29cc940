# mistake: NameError: softmax is not defined
import torch
from torch.nn import functional as F


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError(temp)
    lead = Q.shape[:-2]
    q = Q.reshape(-1, Q.shape[-2], Q.shape[-1])
    k = K.reshape(-1, K.shape[-2], K.shape[-1])
    v = V.reshape(-1, V.shape[-2], V.shape[-1])
    scores = torch.bmm(q, k.permute(0, 2, 1))
    attn = softmax(scores / temp, dim=2)
    out = torch.bmm(attn, v)
    return out.reshape(lead + (Q.shape[-2], V.shape[-1]))


def lookup(entries, key, temp=0.01):
    position = {k: i for i, k in enumerate(entries)}
    index = position[key]  # KeyError if missing
    eye = torch.eye(len(entries))
    values = torch.stack([torch.tensor(v, dtype=torch.float) for v in entries.values()])
    return attention(eye[[index]], eye, values, temp).flatten()
