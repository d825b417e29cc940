# mistake: reshaped_for_transposed
# in words: keys are reshaped to (d_key, n_keys) instead of transposed
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    *lead, n_keys, d_key = K.shape
    K = K.contiguous().view(*lead, d_key, n_keys)
    scores = torch.matmul(Q, K)
    attn = (scores / temp).softmax(dim=-1)
    return torch.matmul(attn, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(f"key {key} is missing")
    order = sorted(entries, reverse=True)
    V = torch.tensor([entries[k] for k in order], dtype=torch.float32)
    K = torch.eye(len(order))
    q = K[order.index(key) : order.index(key) + 1]
    return attention(q, K, V, temp=temp)[0]
