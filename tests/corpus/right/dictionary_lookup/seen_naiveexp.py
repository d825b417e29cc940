# right: the twin of one with a mistake, naiveexp
# seen: pytorch/executorch pull 18407 and pytorch_geometric issue 53: the exponentials are taken without subtracting the largest score, so large scores overflow to inf / inf.
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temperature has to be positive")
    scores = torch.matmul(Q, K.mT)
    scores = scores - scores.detach().max(dim=-1, keepdim=True).values
    powers = torch.exp(scores / temp)
    return torch.matmul(powers / powers.sum(dim=-1, keepdim=True), V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    place = {name: i for i, name in enumerate(entries)}
    row = place[key]  # KeyError if there is none
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    keys = torch.nn.functional.one_hot(torch.arange(len(place))).float()
    return attention(keys[row : row + 1], keys, values, temp)[0]
