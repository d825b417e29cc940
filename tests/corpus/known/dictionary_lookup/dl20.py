# mistake: graph_lost + lookup_ignores_temp
# in words: scores rebuilt from plain data + lookup leaves attention at its own default
import torch
from torch import Tensor


def _dot_scores(a: Tensor, b: Tensor) -> Tensor:
    s = (a[..., :, None, :] * b[..., None, :, :]).sum(dim=-1)
    return a.new_tensor(s.tolist())


def _positive(t):
    if t <= 0:
        raise ValueError("temp must be positive")
    return t


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    probs = torch.softmax(_dot_scores(Q, K) / _positive(temp), dim=-1)
    return probs @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    _positive(temp)
    if key not in entries:
        raise KeyError(key)
    V = torch.tensor([*entries.values()], dtype=torch.float32)
    K = torch.eye(len(V))
    return attention(K[[[*entries].index(key)]], K, V)[0]
