import torch
import torch.nn.functional as F
from torch import Tensor


def _positive(temp: float) -> float:
    if not temp > 0:
        raise ValueError(f"temp has to be above 0, got {temp}")
    return temp


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    _positive(temp)
    wide = torch.promote_types(Q.dtype, torch.float32)
    q, k, v = (t.to(wide) for t in (Q, K, V))
    match = torch.einsum("...qd,...kd->...qk", q, k)
    bumps = ((match - match.amax(-1, keepdim=True)) / temp).exp()
    blend = torch.einsum("...qk,...kv->...qv", bumps / bumps.sum(-1, keepdim=True), v)
    return blend.to(V.dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    _positive(temp)
    if key not in entries:
        raise KeyError(key)
    names = list(entries)
    codes = F.one_hot(torch.arange(len(names)), len(names)).float()
    table = torch.tensor([entries[name] for name in names], dtype=torch.float32)
    return attention(codes[names.index(key)][None, :], codes, table, temp)[0]
