# right: einsum, softmax written by hand, one-hot keys by comparison
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return softmax(Q K^T / temp) V."""
    if temp <= 0:
        raise ValueError("temp must be positive")
    scores = torch.einsum("...qd,...kd->...qk", Q, K)
    best = scores.max(dim=-1, keepdim=True).values
    raised = torch.exp((scores - best) / temp)
    total = raised.sum(dim=-1, keepdim=True)
    return torch.einsum("...qk,...kv->...qv", raised / total, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value of `key`, by attention over one-hot keys."""
    if temp <= 0:
        raise ValueError("temp must be positive")
    if key not in entries:
        raise KeyError(f"no entry {key}")
    one_hot = [[float(a == b) for b in entries] for a in entries]
    query = [[float(a == key) for a in entries]]
    rows = [[float(number) for number in row] for row in entries.values()]
    Q, K, V = (torch.tensor(t, dtype=torch.float32) for t in (query, one_hot, rows))
    return attention(Q, K, V, temp).squeeze(0)
