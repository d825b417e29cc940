# mistake: scaled_by_root_of_d_key
# in words: divides the scores by sqrt(d_key) as well as by temp, from the habit of scaled attention
# true: the weights are too even (as if temp were temp*sqrt(d_key)); with d_key 1 all is right
import math
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    d_k = Q.size(-1)
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(d_k)
    p_attn = torch.softmax(scores / temp, dim=-1)
    return torch.matmul(p_attn, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    names = list(entries.keys())
    if key not in entries:
        raise KeyError(key)
    onehots = torch.eye(len(names))
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    query = onehots[names.index(key)].unsqueeze(0)
    return attention(query, onehots, values, temp).squeeze(0)
