# mistake: temp_ignored + unstable_exponential
# in words: temp is set aside + exp without taking the maximum off
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    expo = torch.einsum("...qd,...kd->...qk", Q, K).exp()
    top = torch.einsum("...qk,...kv->...qv", expo, V)
    bottom = torch.einsum("...qk->...q", expo).unsqueeze(-1)
    return top / bottom


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    hot = torch.eye(len(entries))
    content = torch.tensor(list(entries.values()), dtype=torch.float32)
    row = next(i for i, k in enumerate(entries) if k == key)
    return attention(hot[None, row], hot, content, temp)[0]
