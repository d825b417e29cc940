# mistake: the helper already applies a softmax and attention applies it a second time
# true: the weights are almost even, never larger than e times each other, even at a tiny temp
import torch
from torch import Tensor, nn


def attention_weights(Q, K, temp):
    scores = Q @ K.transpose(-1, -2)
    return nn.functional.softmax(scores / temp, dim=-1)


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp should be larger than zero")
    w = attention_weights(Q, K, temp)
    softmax = nn.Softmax(dim=-1)
    return softmax(w) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    order = list(entries)
    if key not in order:
        raise KeyError(key)
    I = torch.eye(len(order))
    V = torch.Tensor([entries[k] for k in order])
    return attention(I[order.index(key)].unsqueeze(0), I, V, temp).squeeze(0)
