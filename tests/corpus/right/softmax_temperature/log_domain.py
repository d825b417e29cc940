# note: weights from log_softmax, the entropy from a where-guarded logarithm in a wider dtype, the variance as a squared norm
import torch
import torch.nn.functional as F
from torch import Tensor


def _wide(t: Tensor) -> Tensor:
    return t.to(torch.promote_types(t.dtype, torch.float32))


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError("temperature must be above 0")
    s = _wide(scores)
    s = s - s.detach().amax(-1, keepdim=True)
    return F.log_softmax(s.div(temperature), -1).exp().to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    w = _wide(weights)
    positive = w > 0
    log_w = torch.where(positive, torch.where(positive, w, 1.0).log(), 0.0)
    return torch.einsum("...k,...k->...", w, log_w).neg().to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    p = torch.einsum("...nd,...nd->...n", _wide(queries), _wide(keys))
    d = p - p.mean(-1, keepdim=True)
    return (d.square().sum(-1) / p.shape[-1]).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return (_wide(scores) * d_key**-0.5).to(scores.dtype)
