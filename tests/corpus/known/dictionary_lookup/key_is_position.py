# mistake: key_taken_as_place
# the key is used as the position of its one-hot vector, so dicts whose keys are not 0, 1, 2, ... in this order fail or give another entry
import torch
import torch.nn.functional as F
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temperature must be greater than zero")
    logits = Q @ K.mT
    best = logits.detach().max(-1, keepdim=True)[0]
    return F.softmax((logits - best) / temp, dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(f"no entry {key}")
    n = len(entries)
    keys = F.one_hot(torch.arange(n), n).float()
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    query = keys[key : key + 1]
    return attention(query, keys, values, temp=temp).squeeze(0)
