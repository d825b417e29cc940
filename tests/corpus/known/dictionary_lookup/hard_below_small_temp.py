# mistake: best_key_alone_at_small_temps
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    scores = Q @ K.transpose(-2, -1)
    if temp <= 0.01:
        # practically a dictionary
        best = scores.argmax(dim=-1)
        weights = torch.nn.functional.one_hot(best, K.shape[-2]).to(V.dtype)
    else:
        weights = torch.softmax(scores / temp, dim=-1)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    keys = list(entries)
    K = torch.eye(len(keys))
    V = torch.tensor([entries[k] for k in keys], dtype=torch.float32)
    Q = K[keys.index(key)].unsqueeze(0)
    return attention(Q, K, V, temp).squeeze(0)
