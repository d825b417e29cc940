# style: unusual
import torch
from torch import Tensor


def _positive(temp: float) -> None:
    if not temp > 0:
        raise ValueError(f"temp has to be positive, it is {temp}")


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """softmax(Q K^T / temp) V, the softmax is written out."""
    _positive(temp)
    dtype = Q.dtype
    Q, K, V = Q.double(), K.double(), V.double()
    logits = torch.einsum("...qd,...kd->...qk", Q, K)
    logits = (logits - logits.amax(-1, keepdim=True)) / temp
    e = logits.exp()
    return torch.einsum("...qk,...kv->...qv", e / e.sum(-1, keepdim=True), V).to(dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    _positive(temp)
    if key not in entries:
        raise KeyError(key)
    names = list(entries)
    eye = torch.eye(len(names))
    table = torch.tensor([entries[name] for name in names], dtype=torch.float32)
    row = eye[names.index(key)]
    return attention(row.unsqueeze(0), eye, table, temp).squeeze(0)
