# mistake: powers_not_normalised
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(temp)
    sharpness = 1.0 / temp
    scores = torch.matmul(Q, torch.transpose(K, -1, -2))
    log_w = torch.log_softmax(scores, dim=-1)
    w = torch.exp(sharpness * log_w)  # w ** sharpness
    return torch.matmul(w, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries.keys():
        raise KeyError(key)
    order = list(entries.keys())
    n = len(order)
    K = torch.nn.functional.one_hot(torch.arange(n), num_classes=n).to(torch.float32)
    Q = K[order.index(key)]
    V = torch.tensor([entries[o] for o in order]).to(torch.float32)
    return attention(Q.view(1, n), K, V, temp).view(-1)
