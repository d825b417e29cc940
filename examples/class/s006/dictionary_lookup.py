import torch
from torch.nn.functional import softmax


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError("temp <= 0")
    weights = softmax(Q @ K.mT / temp, dim=-1)
    return weights @ V


def lookup(entries, key, temp=0.01):
    ids = torch.tensor(list(entries))
    query = (ids == key).float()
    if query.sum() == 0:
        raise KeyError(key)
    keys = torch.eye(len(ids))
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    return attention(query[None, :], keys, values, temp).flatten()
