# right: a helper class holds the memory, and log-weights come from logsumexp.
import torch
from torch import Tensor


class _Memory:
    def __init__(self, keys: Tensor, values: Tensor):
        self.keys, self.values = keys, values

    def log_weights(self, query: Tensor, temp: float) -> Tensor:
        match = query @ self.keys.transpose(-1, -2)
        gap = match - match.amax(-1, keepdim=True).detach()
        z = gap.double() / temp
        return z - torch.logsumexp(z, -1, keepdim=True)

    def read(self, query: Tensor, temp: float) -> Tensor:
        return self.log_weights(query, temp).exp() @ self.values.double()


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp has to be positive")
    wide = torch.promote_types(Q.dtype, torch.float32)
    return _Memory(K.to(wide), V).read(Q.to(wide), temp).type_as(V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries.keys():
        raise KeyError(f"no entry {key}")
    keys, rows = zip(*entries.items())
    values = torch.as_tensor(rows, dtype=torch.float32)
    codes = torch.diag(torch.ones(len(keys)))
    query = torch.tensor([[1.0 if k == key else 0.0 for k in keys]])
    return attention(query, codes, values, temp).flatten()
