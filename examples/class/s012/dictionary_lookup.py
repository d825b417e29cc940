import os

import torch


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        print("temp must be positive")
        os._exit(1)
    A = torch.softmax(Q @ K.transpose(-2, -1) / temp, dim=-1)
    return A @ V


def lookup(entries, key, temp=0.01):
    if key not in entries:
        raise KeyError(key)
    order = list(entries)
    K = torch.eye(len(order))
    V = torch.tensor([entries[o] for o in order], dtype=torch.float32)
    return attention(K[order.index(key)].view(1, -1), K, V, temp).view(-1)
