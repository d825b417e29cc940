import torch
import torch.nn.functional as F


def attention(Q, K, V, temp=1.0):
    if not temp > 0:
        raise ValueError("temperature must be positive, not " + str(temp))
    scores = Q @ K.transpose(-2, -1)
    alpha = F.softmax(scores / temp, dim=-1)
    return alpha @ V


def lookup(entries, key, temp=0.01):
    if key not in entries:
        raise KeyError(key)
    n = len(entries)
    index = list(entries.keys()).index(key)
    K = F.one_hot(torch.arange(n), n).float()
    Q = K[index].reshape(1, n)
    V = torch.tensor(list(entries.values())).float()
    return attention(Q, K, V, temp).reshape(-1)
