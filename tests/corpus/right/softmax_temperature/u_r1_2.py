# right: computed in at least float32 and cast back, logs only where weights are positive, torch.var with correction 0
import torch
from torch import Tensor


def _widen(t: Tensor) -> Tensor:
    return t.to(torch.promote_types(t.dtype, torch.float32))


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(f"the temperature must be above 0, not {temperature}")
    wide = _widen(scores) / temperature
    e = torch.exp(wide - wide.detach().amax(dim=-1, keepdim=True))
    return torch.div(e, e.sum(dim=-1, keepdim=True)).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    wide = _widen(weights)
    positive = wide > 0
    logs = torch.where(positive, wide, torch.ones_like(wide)).log()
    return torch.einsum("...k,...k->...", wide, -logs).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = torch.einsum("...nd,...nd->...n", _widen(queries), _widen(keys))
    return products.var(dim=-1, correction=0).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * float(d_key) ** -0.5
