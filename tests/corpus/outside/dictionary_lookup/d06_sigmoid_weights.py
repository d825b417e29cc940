# mistake: squashes each score with a sigmoid instead of a softmax over the keys
# true: each weight is between 0 and 1 but a row does not sum to 1; a lookup adds half of every other entry
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive, got %s" % temp)
    scores = torch.matmul(Q, K.swapaxes(-1, -2))
    # how much does each key match: a number between 0 and 1
    match = torch.sigmoid(scores / temp)
    return torch.matmul(match, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    all_keys = list(entries.keys())
    onehot_keys = torch.zeros(len(all_keys), len(all_keys)).fill_diagonal_(1.0)
    if key not in all_keys:
        raise KeyError(key)
    values = torch.tensor([entries[k] for k in all_keys], dtype=torch.float32)
    q = onehot_keys[all_keys.index(key)].reshape(1, -1)
    out = attention(q, onehot_keys, values, temp)
    return out[0]
