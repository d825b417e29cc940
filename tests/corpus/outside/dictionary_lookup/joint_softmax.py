# mistake: one softmax over queries and keys together
import torch


def softmax(z):
    flat = z.flatten(-2)
    flat = flat - flat.max(dim=-1, keepdim=True).values
    e = torch.exp(flat)
    e = e / torch.sum(e, dim=-1, keepdim=True)
    return e.reshape(z.shape)


def attention(Q, K, V, temp=1.0):
    if temp <= 0.0:
        raise ValueError("temp has to be > 0")
    t = Q.unsqueeze(-2) * K.unsqueeze(-3)
    z = t.sum(dim=-1)
    a = softmax(z / temp)
    result = a.unsqueeze(-1) * V.unsqueeze(-3)
    return result.sum(dim=-2)


def lookup(entries, key, temp=0.01):
    if key not in entries:
        raise KeyError("no such key")
    order = sorted(entries)
    place = order.index(key)
    keys = torch.zeros(len(order), len(order))
    keys.fill_diagonal_(1.0)
    values = torch.tensor([[float(v) for v in entries[name]] for name in order])
    query = torch.zeros(1, len(order))
    query[0, place] = 1.0
    return attention(query, keys, values, temp).reshape(-1)
