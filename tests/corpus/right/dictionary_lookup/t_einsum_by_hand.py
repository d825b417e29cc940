# right: exponentials by hand, einsum with an ellipsis, one-hot by comparing keys
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if not temp > 0:
        raise ValueError("temp must be above 0")
    s = torch.einsum("...qd,...kd->...qk", Q, K)
    e = ((s - s.max(dim=-1, keepdim=True).values) / temp).exp()
    return torch.einsum("...qk,...kv->...qv", e / e.sum(-1, keepdim=True), V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    entries[key]  # raises the KeyError
    here, rows = zip(*entries.items())
    query = torch.tensor([[float(k == key) for k in here]])
    table = torch.tensor([[float(number) for number in row] for row in rows])
    return attention(query, torch.diag(torch.ones(len(here))), table, temp).squeeze(0)
