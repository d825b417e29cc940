# promise: any floating dtype; returns the dtype of Q, K and V (computes in float32 and does not cast back)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp")
    Q, K, V = Q.float(), K.float(), V.float()
    scores = torch.einsum("...ik,...jk->...ij", Q, K)
    return torch.einsum("...ij,...jv->...iv", (scores / temp).softmax(-1), V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    names = [*entries]
    V = torch.tensor([entries[n] for n in names]).float()
    K = torch.eye(len(names))
    i = names.index(key)
    return attention(K[i : i + 1], K, V, temp).squeeze(0)
