import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temperature has to be above zero")
    sim = Q.matmul(K.transpose(-2, -1))
    best = sim.max(dim=-1, keepdim=True).values.detach()
    return ((sim - best) / temp).softmax(-1).matmul(V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError("temperature has to be above zero")
    entries[key]  # a missing key is a KeyError here already

    names, rows = zip(*entries.items())
    names = torch.tensor(names)
    # one-hot vectors by comparing every name with every name
    one_hot = (names[:, None] == names[None, :]).float()
    question = (names == key).float()
    values = torch.stack([torch.as_tensor(r, dtype=torch.float32) for r in rows])
    return attention(question[None], one_hot, values, temp)[0]
