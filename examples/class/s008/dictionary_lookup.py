import torch


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError("only positive temperatures")
    sim = Q @ torch.swapaxes(K, -1, -2)
    p = torch.softmax(sim / temp, -1)
    return p @ V


def lookup(entries, key, temp=0.01):
    ks, vs = list(entries.keys()), list(entries.values())
    try:
        place = ks.index(key)
    except ValueError:
        raise KeyError(key) from None
    query = torch.zeros(1, len(ks))
    query[0, place] = 1.0
    result = attention(query, torch.eye(len(ks)), torch.tensor(vs, dtype=torch.float32), temp)
    return result[0, :]
