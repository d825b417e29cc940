import torch


def attention(Q, K, V, temp=1.0):
    assert_positive(temp)
    scores = Q @ K.transpose(-1, -2)
    scores = scores / temp
    return torch.softmax(scores, dim=-1) @ V


def assert_positive(temp):
    if temp <= 0:
        raise ValueError("temp is not positive")


def lookup(entries, key, temp=0.01):
    names = sorted(entries)
    if key not in names:
        raise KeyError(key)
    V = torch.tensor([entries[name] for name in names], dtype=torch.float32)
    K = torch.eye(len(names))
    Q = K[names.index(key)]
    return attention(Q.unsqueeze(0), K, V, temp).squeeze(0)
