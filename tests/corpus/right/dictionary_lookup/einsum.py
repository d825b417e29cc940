"""Dictionary lookup as attention, in einsum notation (q queries, k keys, c features, v values)."""

import torch


def softmax(s):
    top = s.detach().amax(-1, keepdim=True) if s.numel() else 0.0
    e = torch.exp(s - top)
    return e / torch.einsum("...k->...", e).unsqueeze(-1)


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError(f"temp must be positive, got {temp}")
    s = torch.einsum("...qc,...kc->...qk", Q, K) / temp
    return torch.einsum("...qk,...kv->...qv", softmax(s), V)


def lookup(entries, key, temp=0.01):
    if key not in entries:
        raise KeyError(key)
    V = torch.tensor(list(entries.values()), dtype=torch.get_default_dtype())
    K = torch.eye(len(entries), dtype=V.dtype)
    q = K[list(entries).index(key)]
    return torch.einsum("qv->v", attention(q[None], K, V, temp))
