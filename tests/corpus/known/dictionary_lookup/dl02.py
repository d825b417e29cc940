# mistake: multiplied_by_temp
# in words: divides the scores by the inverse temperature
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be > 0")
    beta = 1.0 / temp  # inverse temperature
    logits = Q.matmul(K.mT).div(beta)
    logits = logits - logits.logsumexp(dim=-1, keepdim=True)
    return logits.exp().matmul(V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    position = {k: i for i, k in enumerate(entries)}
    onehot = torch.eye(len(position))
    V = torch.tensor(list(entries.values()), dtype=torch.float32)
    row = position[key]  # KeyError if it is not there
    return attention(onehot[row : row + 1], onehot, V, temp)[0]
