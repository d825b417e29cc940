# promise: lookup returns (d_value,) (squeeze() makes a single number of a value of length 1)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp")
    return torch.softmax(Q.matmul(K.transpose(-1, -2)) / temp, -1).matmul(V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    order = {k: n for n, k in enumerate(entries)}
    hot = torch.eye(len(order))
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    return attention(hot[order[key]].unsqueeze(0), hot, values, temp).squeeze()
