import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if not temp > 0:
        raise ValueError(f"temp = {temp} is not positive")
    s = torch.einsum("...qd,...kd->...qk", Q, K)
    # max first, then the temperature: no overflow for a tiny temp
    s = (s - s.amax(-1, keepdim=True).detach()) / temp
    return torch.einsum("...qk,...kv->...qv", s.softmax(-1), V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    row = {k: i for i, k in enumerate(entries)}[key]
    K = torch.eye(len(entries))
    V = torch.stack([torch.as_tensor(v, dtype=torch.float32) for v in entries.values()])
    return attention(K[row : row + 1], K, V, temp)[0]
