# note: einsum, exponentials by hand in float32 or better, and one-hot keys from a comparison table of the dict's keys
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if not temp > 0:
        raise ValueError(f"temp must be above 0, got {temp}")
    wide = torch.promote_types(Q.dtype, torch.float32)
    q, k, v = (t.to(wide) for t in (Q, K, V))
    s = torch.einsum("...id,...jd->...ij", q, k)
    gap = s - s.amax(-1, keepdim=True).detach()
    e = (gap / temp).exp()
    numer = torch.einsum("...ij,...jv->...iv", e, v)
    return (numer / e.sum(-1, keepdim=True)).to(V.dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    entries[key]  # the dict itself raises the KeyError
    order = sorted(entries)
    same = [[float(a == b) for b in order] for a in order]
    table = torch.tensor(same)
    ask = torch.tensor([[float(b == key) for b in order]])
    return attention(ask, table, torch.tensor([[float(n) for n in entries[b]] for b in order]), temp).reshape(-1)
