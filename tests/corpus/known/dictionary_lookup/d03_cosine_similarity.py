# mistake: cosines_for_products
import torch
import torch.nn.functional as F
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0.0:
        raise ValueError("temperature has to be > 0")
    similarity = F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).mT
    weights = F.softmax(similarity / temp, dim=-1)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(f"{key} not found")
    ids = list(entries)
    K = F.one_hot(torch.arange(len(ids)), num_classes=len(ids)).float()
    V = torch.tensor([entries[i] for i in ids], dtype=torch.float)
    Q = K[[ids.index(key)]]
    return attention(Q, K, V, temp=temp).flatten()
