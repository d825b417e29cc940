# mistake: temp_ignored
# in words: the temperature is validated and then never used
import torch
from torch import Tensor


class _Temperature:
    """A checked temperature."""

    def __init__(self, value):
        if value <= 0:
            raise ValueError("temperature must be positive")
        self.value = float(value)

    def cool(self, logits):
        shifted = logits - logits.max(dim=-1, keepdim=True).values
        return shifted


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    logits = _Temperature(temp).cool(Q @ K.transpose(-2, -1))
    e = torch.exp(logits)
    return (e / e.sum(-1, keepdim=True)) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    ks = sorted(entries)
    if key not in ks:
        raise KeyError(f"{key} not found")
    table = torch.tensor([list(map(float, entries[k])) for k in ks])
    ident = torch.eye(len(ks))
    q = (torch.tensor(ks) == key).float()
    return attention(q[None, :], ident, table, temp=temp)[0]
