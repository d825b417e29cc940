# mistake: lookup turns the values into an integer tensor before making them floats
# true: attention is right and so is lookup for whole numbers; fractions in the entries are cut off
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp")
    s = torch.einsum("...id,...jd->...ij", Q, K).div(temp)
    return torch.einsum("...ij,...jv->...iv", s.softmax(dim=-1), V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    keys = torch.tensor(list(entries), dtype=torch.int64)
    values = torch.tensor(list(entries.values()), dtype=torch.int64)
    one_hot = torch.eye(len(keys))
    query = (keys == key).float()
    return attention(query[None], one_hot, values.float(), temp)[0]
