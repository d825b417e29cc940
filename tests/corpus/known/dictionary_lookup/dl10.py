# mistake: unstable_exponential
# in words: softmax written with a bare exp
import torch
from torch import Tensor


def boltzmann(energy: Tensor, temp: float) -> Tensor:
    """exp(-E/T) / Z, as in physics."""
    factors = torch.exp(-energy / temp)
    Z = torch.sum(factors, dim=-1, keepdim=True)
    return factors / Z


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temperature in kelvin, please")
    energy = -torch.einsum("...qd,...kd->...qk", Q, K)
    return boltzmann(energy, temp) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    n = len(entries)
    keys = torch.eye(n)
    query = keys[[k == key for k in entries]]
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    return attention(query, keys, values, temp).squeeze(0)
