# mistake: scaled_by_d_key
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    # cold -> sharp, hot -> flat
    if temperature <= 0:
        raise ValueError("temperature <= 0")
    x = scores.to(torch.float64)
    top = x.max(dim=-1, keepdim=True)[0].detach()
    e = torch.exp((x - top) / temperature)
    p = e / e.sum(dim=-1, keepdim=True)
    return p.to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    """Entropy in nats, 0 log 0 = 0."""
    safe = torch.where(weights > 0, weights, torch.ones_like(weights))
    return -(weights * safe.log()).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    dots = torch.einsum("...nd,...nd->...n", queries, keys)
    return dots.var(dim=-1, unbiased=False)


def scale(scores: Tensor, d_key: int) -> Tensor:
    # long vectors -> large products, so undo the length
    return scores / d_key
