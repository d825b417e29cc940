# mistake: softmax_over_axis_one
import torch


def attention(Q, K, V, temp=1.0):
    if not temp > 0:
        raise ValueError("temp has to be positive")
    sims = torch.matmul(Q, K.transpose(-1, -2))
    sims = (sims - sims.amax(dim=-1, keepdim=True)) / temp
    probs = torch.softmax(sims, dim=1)
    return torch.matmul(probs, V)


def lookup(entries, key, temp=0.01):
    if temp <= 0:
        raise ValueError("temp has to be positive")
    entries[key]
    order = list(entries)
    idx = order.index(key)
    K = torch.eye(len(order))
    V = torch.tensor([entries[o] for o in order], dtype=torch.float32)
    return attention(K[[idx]], K, V, temp)[0]
