# note: no matrix product at all, scores and output are sums of broadcast products, softmax by log-sum-exp
import torch
from torch import Tensor


def _ensure_positive(temp: float) -> float:
    match temp:
        case t if t > 0:
            return t
        case _:
            raise ValueError("temp must be positive")


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    _ensure_positive(temp)
    dtype = V.dtype
    if dtype.itemsize < 4:
        Q, K, V = Q.float(), K.float(), V.float()
    scores = (Q.unsqueeze(-2) * K.unsqueeze(-3)).sum(-1)
    shifted = (scores - scores.max(-1, keepdim=True).values) / temp
    log_w = shifted - torch.logsumexp(shifted, -1, keepdim=True)
    out = (log_w.exp().unsqueeze(-1) * V.unsqueeze(-3)).sum(-2)
    return out.to(dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    _ensure_positive(temp)
    names, rows = zip(*entries.items()) if entries else ((), ())
    try:
        where = names.index(key)
    except ValueError:
        raise KeyError(key) from None
    hot = torch.zeros(len(names), len(names)).fill_diagonal_(1.0)
    return attention(hot.narrow(0, where, 1), hot, torch.as_tensor(rows, dtype=torch.float32), temp).squeeze(0)
