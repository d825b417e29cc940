import torch


def attention(Q, K, V, temp=1.0):
    print("Q", Q.shape, "K", K.shape, "V", V.shape, "temp", temp)
    if temp <= 0:
        raise ValueError("bad temp")
    scores = Q @ K.transpose(-2, -1)
    print("scores", scores)
    weights = torch.softmax(scores / temp, dim=-1)
    print("weights", weights)
    print("sum of weights", weights.sum(-1))
    output = weights @ V
    print("output", output)
    return output, weights


def lookup(entries, key, temp=0.01):
    print("looking for", key, "in", entries)
    if key not in entries:
        raise KeyError(key)
    i = list(entries).index(key)
    K = torch.eye(len(entries))
    V = torch.tensor(list(entries.values()), dtype=torch.float32)
    output, weights = attention(K[i : i + 1], K, V, temp)
    print("found", output)
    return output.squeeze(0)
