# right: einsum in float64, with the row maximum removed before the division by temp.
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if not temp > 0:
        raise ValueError(f"temp must be positive, not {temp}")
    q, k, v = map(Tensor.double, (Q, K, V))
    logits = torch.einsum("...qd,...kd->...qk", q, k)
    logits = logits - logits.detach().amax(-1, keepdim=True)
    w = logits.div(temp).exp()
    w = w / w.sum(-1, keepdim=True)
    return torch.einsum("...qk,...kv->...qv", w, v).to(Q.dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    entries[key]
    where = {k: i for i, k in enumerate(entries)}
    table = torch.tensor(list(entries.values()), dtype=torch.float32)
    onehot = torch.eye(len(where))
    return attention(onehot[where[key]].unsqueeze(0), onehot, table, temp).squeeze(0)
