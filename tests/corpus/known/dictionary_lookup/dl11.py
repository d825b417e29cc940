# mistake: transposed_all_axes
# in words: .permute(*reversed axes) turns round the batch axes too
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """softmax(Q Kt / temp) V"""
    assert_positive(temp)
    Kt = K.permute(*range(K.ndim - 1, -1, -1))
    weights = ((Q @ Kt) / temp).softmax(-1)
    return weights @ V


def assert_positive(temp):
    if temp <= 0:
        raise ValueError("temp must be positive, not %r" % temp)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    assert_positive(temp)
    values = torch.tensor([entries[k] for k in entries], dtype=torch.float32)
    which = [k for k in entries].index(key) if key in entries else None
    if which is None:
        raise KeyError(key)
    keys = torch.eye(len(values))
    return attention(keys[which].reshape(1, -1), keys, values, temp).reshape(-1)
