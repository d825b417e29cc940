# mistake: sorted_keys_unsorted_values
# in words: the one-hot keys follow the sorted order of the dictionary, the values its insertion order
# true: attention is right; lookup gives another entry's value whenever the keys were not inserted in ascending order
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if not temp > 0:
        raise ValueError(f"temp is {temp}")
    scores = torch.einsum("...qd,...kd->...qk", Q, K)
    return torch.einsum("...qk,...kv->...qv", (scores / temp).softmax(-1), V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    ordered = sorted(entries)
    position = {k: i for i, k in enumerate(ordered)}
    hot = torch.eye(len(ordered))
    V = torch.tensor(list(entries.values())).float()
    q = hot[position[key]][None, :]
    return attention(q, hot, V, temp)[0]
