r"""Modern Hopfield retrieval:  xi_new = V softmax(beta * K^T xi)

beta is the inverse temperature.
"""
from typing import Dict, List

import torch
from torch import Tensor


def hopfield_retrieve(state: Tensor, stored: Tensor, projection: Tensor, beta: float) -> Tensor:
    energy = state @ stored.mT
    energy = beta * energy
    association = torch.softmax(energy, -1)
    return association @ projection


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be > 0 (beta = 1 / temp)")
    return hopfield_retrieve(state=Q, stored=K, projection=V, beta=1.0 / temp)


def lookup(entries: Dict[int, List[float]], key: int, temp: float = 0.01) -> Tensor:
    wanted = entries[key]  # raises KeyError
    dim = len(wanted)
    patterns = torch.eye(len(entries), dtype=torch.float32)
    targets = torch.empty(len(entries), dim, dtype=torch.float32)
    index = -1
    for row, (name, numbers) in enumerate(entries.items()):
        targets[row] = torch.tensor(numbers, dtype=torch.float32)
        if name == key:
            index = row
    xi = patterns.narrow(0, index, 1)
    return attention(xi, patterns, targets, temp=temp).view(dim)
