# mistake: reshaped_for_transposed + temp_after_softmax
# in words: reshape stands in for the transpose + the output is divided by temp
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    flipped = K.reshape(K.shape[:-2] + (K.shape[-1], K.shape[-2]))
    mixed = torch.softmax(Q @ flipped, dim=-1) @ V
    return mixed / temp


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    try:
        entries[key]
    except KeyError:
        raise
    labels = list(entries)
    V = torch.stack([torch.tensor(entries[k]).float() for k in labels])
    hot = torch.eye(len(labels))
    return attention(hot[labels.index(key)].view(1, -1), hot, V, temp).view(-1)
