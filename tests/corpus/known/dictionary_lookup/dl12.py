# mistake: temp_after_softmax
# in words: the temperature divides the values, not the scores
import torch
import torch.nn.functional as F
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be > 0")
    log_w = F.log_softmax(torch.matmul(Q, K.transpose(-2, -1)), dim=-1)
    return torch.matmul(log_w.exp(), V / temp)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be > 0")
    index = {}
    for k in entries:
        index[k] = len(index)
    i = index[key]
    onehots = torch.eye(len(index))
    V = torch.as_tensor([entries[k] for k in index], dtype=torch.float32)
    return attention(onehots[i].unsqueeze(0), onehots, V, temp).squeeze(0)
