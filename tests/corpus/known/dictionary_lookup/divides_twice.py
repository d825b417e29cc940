# mistake: divided_by_temp_twice
import torch


def softmax(score):
    score = score - score.max(dim=-1, keepdim=True).values
    num = torch.exp(score)
    return num / torch.sum(num, dim=-1, keepdim=True)


def attention(Q, K, V, temp=1.0):
    if temp <= 0.0:
        raise ValueError("temp has to be > 0")
    pairs = Q.unsqueeze(-2) * K.unsqueeze(-3)
    score = pairs.sum(dim=-1) / temp
    att = softmax(score / temp)
    out = att.unsqueeze(-1) * V.unsqueeze(-3)
    return out.sum(dim=-2)


def lookup(entries, key, temp=0.01):
    if key not in entries:
        raise KeyError("no such key")
    ks = sorted(entries)
    pos = ks.index(key)
    keys = torch.zeros(len(ks), len(ks))
    keys.fill_diagonal_(1.0)
    values = torch.tensor([[float(v) for v in entries[name]] for name in ks])
    query = torch.zeros(1, len(ks))
    query[0, pos] = 1.0
    return attention(query, keys, values, temp).reshape(-1)
