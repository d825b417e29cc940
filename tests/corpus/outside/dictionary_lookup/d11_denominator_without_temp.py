# mistake: a hand-written softmax divides the scores by temp in the numerator only
# true: right at temp 1; at other temps the weights have the right proportions but do not sum to 1
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    scores = Q @ torch.transpose(K, -2, -1)
    shifted = scores - scores.max(-1, keepdim=True)[0]
    top = torch.exp(shifted / temp)
    bottom = torch.exp(shifted).sum(-1, keepdim=True)
    return (top / bottom) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    keys = tuple(entries)
    if key not in keys:
        raise KeyError(str(key))
    K = torch.diag(torch.ones(len(keys)))
    V = torch.tensor([entries[k] for k in keys], dtype=torch.float32)
    Q = torch.zeros(1, len(keys))
    Q[0, keys.index(key)] = 1.0
    return attention(Q, K, V, temp).reshape(V.shape[1])
